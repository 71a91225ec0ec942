"""Environments that go in step are cut as each would be by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkShape
from memory.chunks.unfinished import Draft, Moments
from tests.memory.reference import SHAPES, chunk_of

ENVIRONMENTS, MOMENTS = 3, 300


def _play(seed: int, looks_from: int = 50, continuous: bool = False) -> list[Moments]:
    """Episodes of some ten steps, that restart with an idle row; frames tell where they are of."""
    generator = np.random.default_rng(seed)
    moments, over = [], np.zeros(ENVIRONMENTS, bool)
    for number in range(MOMENTS):
        acted = ~over
        ends = generator.random((2, ENVIRONMENTS)) < 0.05
        terminated, truncated = ends & acted
        frames = np.stack([np.full((2, 2), [row, number % 256], np.uint8) for row in range(ENVIRONMENTS)])
        discrete, numbers = generator.integers(0, 6, ENVIRONMENTS), generator.normal(size=(ENVIRONMENTS, 2))
        a_t = numbers.astype(np.float32) if continuous else discrete
        rewards = generator.normal(0, 2, ENVIRONMENTS)
        estimates = generator.random((2, ENVIRONMENTS, 5)).astype(np.float32)
        looked = estimates if number >= looks_from else (None, None)
        moments.append(Moments(frames, a_t, rewards, terminated, truncated, acted, *looked))
        over = terminated | truncated
    return moments


def _row(moments: Moments, row: int) -> Moments:
    """One environment's part."""
    columns: list[Any] = [None if column is None else column[row : row + 1] for column in moments]
    return Moments(*columns)


def _arrays(draft: Draft) -> list[NDArray[Any]]:
    return [*chunk_of(draft), draft.targets, draft.chosen, draft.greedy]


def _assert_same(some: list[Draft], others: list[Draft]) -> None:
    assert len(some) == len(others) > 0
    for one, other in zip(some, others, strict=True):
        for found, wanted in zip(_arrays(one), _arrays(other), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def _of(drafts: list[Draft], row: int) -> list[Draft]:
    """Those whose frames say that they are of environment `row`."""
    return [draft for draft in drafts if chunk_of(draft).frames[0, 0, 0] == row]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("continuous", [False, True])
def test_a_row_is_cut_as_if_it_were_alone(shape: ChunkShape, continuous: bool) -> None:
    play = _play(0, continuous=continuous)
    together, alone = ChunkBuilder(shape, ENVIRONMENTS), [ChunkBuilder(shape) for _ in range(ENVIRONMENTS)]
    drafts = [draft for now in play for draft in together.add(now)] + together.flush(play[-1].frames)
    for row, builder in enumerate(alone):
        own = [draft for now in play for draft in builder.add(_row(now, row))]
        _assert_same(_of(drafts, row), own + builder.flush(play[-1].frames[row : row + 1]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("at", [1, 49, 77, 200])
def test_goes_on_from_its_state(shape: ChunkShape, at: int) -> None:
    """Also one that has looked already and then plays at random: what it saw before is kept."""
    play = [*_play(1)[:at], *[now._replace(chosen=None, greedy=None) for now in _play(1)[at:]]]
    first, whole = ChunkBuilder(shape, ENVIRONMENTS), ChunkBuilder(shape, ENVIRONMENTS)
    wanted = [draft for now in play for draft in whole.add(now)]
    drafts = [draft for now in play[:at] for draft in first.add(now)]
    second = ChunkBuilder(shape, ENVIRONMENTS)
    second.load_state_dict(first.state_dict())
    _assert_same(drafts + [draft for now in play[at:] for draft in second.add(now)], wanted)


def test_a_chunk_stays_as_it_was_handed_out() -> None:
    """Some of it is a view of the builder's memory, which is never written twice."""
    builder, play = ChunkBuilder(SHAPES[0], ENVIRONMENTS), _play(2)
    drafts, copies = [], []
    for now in play:
        for draft in builder.add(now):
            drafts.append(draft)
            copies.append([array.copy() for array in _arrays(draft)])
    assert len(drafts) > 20
    for draft, copied in zip(drafts, copies, strict=True):
        for found, wanted in zip(_arrays(draft), copied, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_idle_environments_need_no_room() -> None:
    """One may be stopped again and again without a step, while another goes on."""
    builder, play = ChunkBuilder(SHAPES[0], ENVIRONMENTS), _play(3)
    drafts = []
    for now in play:
        goes_on = now.acted & (np.arange(ENVIRONMENTS) == 1)
        drafts += builder.add(now._replace(acted=goes_on))
        drafts += builder.flush(now.frames)
    assert sum(draft.transitions for draft in drafts) == sum(int(now.acted[1]) for now in play)


def test_moments_of_other_environments_are_refused() -> None:
    """Compiled loops take what they are given."""
    builder, play = ChunkBuilder(SHAPES[0], ENVIRONMENTS), _play(4)
    builder.add(play[0])
    for column in ("rewards", "terminated", "truncated", "acted"):
        with pytest.raises(ValueError, match="where there are 3 environments"):
            builder.add(play[1]._replace(**{column: getattr(play[1], column)[:1]}))
    builder = ChunkBuilder(SHAPES[0], ENVIRONMENTS)
    builder.add(play[0])
    with pytest.raises(ValueError, match="Frames uint8"):
        builder.add(play[1]._replace(frames=play[1].frames[:, :1]))


def _state(shape: ChunkShape, steps: int) -> dict[str, Any]:
    """A builder's in the middle of play."""
    builder = ChunkBuilder(shape, ENVIRONMENTS)
    for now in _play(5)[:steps]:
        builder.add(now)
    return builder.state_dict()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_state_whose_parts_do_not_fit_is_refused(shape: ChunkShape) -> None:
    """Each number changed a little, each column cut or widened: refused, or of no consequence."""
    state = _state(shape, 60)
    damaged = [
        {**state, name: state[name] + by} for name in ("next", "ready", "age") for by in (-20, -1, 1, 20)
    ]
    waiting = state["ready"] + np.minimum(state["age"], shape.multi_step)
    damaged.append({**state, "ready": waiting, "age": np.zeros_like(waiting)})
    damaged += [{**state, name: state[name][:1]} for name in ("next", "ready", "age", "carried")]
    for name, column in state["moments"].items():
        for other in (column[:, 1:], column[:, :-1], column[:1], np.concatenate([column] * 9, axis=1)):
            damaged.append({**state, "moments": {**state["moments"], name: other}})
    for name in ("rewards", "ended"):
        column = state["moments"][name][..., :1]
        damaged.append({**state, "moments": {**state["moments"], name: column}})
    for value in (0, 60_000):
        depth = np.full_like(state["moments"]["depth"], value)
        damaged.append({**state, "moments": {**state["moments"], "depth": depth}})
    refused = 0
    for one in damaged:
        builder = ChunkBuilder(shape, ENVIRONMENTS)
        try:
            builder.load_state_dict(one)
        except ValueError:
            refused += 1
        else:
            for now in _play(6)[60:160]:
                builder.add(now)
    assert refused >= len(damaged) - 2 * len(SHAPES)


def test_a_state_from_before_the_first_moment_goes_on() -> None:
    """As older versions saved it too: without columns."""
    state, play = ChunkBuilder(SHAPES[0], ENVIRONMENTS).state_dict(), _play(7)
    drafts = []
    older: dict[str, Any] = {}
    for moments in (older, state["moments"]):
        builder = ChunkBuilder(SHAPES[0], ENVIRONMENTS)
        builder.load_state_dict({**state, "moments": moments})
        drafts.append([draft for now in play for draft in builder.add(now)])
    _assert_same(*drafts)


def test_an_environment_that_waits_for_ever_is_named() -> None:
    """Transitions that wait for one step more keep every later moment."""
    builder, play = ChunkBuilder(SHAPES[0], ENVIRONMENTS), _play(8)
    builder.add(play[0]._replace(acted=np.ones(ENVIRONMENTS, bool)))
    with pytest.raises(ValueError, match="in a row without a chunk"):
        for now in play:
            builder.add(now._replace(acted=np.arange(ENVIRONMENTS) == 1))


def test_a_state_of_other_environments_is_refused() -> None:
    """Before anything is cut from it."""
    with pytest.raises(ValueError, match="1 environments were saved, and there are 3"):
        ChunkBuilder(SHAPES[0], ENVIRONMENTS).load_state_dict(ChunkBuilder(SHAPES[0]).state_dict())
