"""A replay of games of several kinds on a real server: batches of one game each, in turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkLimits, ChunkShape
from memory.chunks.unfinished import Moments
from memory.replay.games import GameShape, GamesReplay
from memory.replay.priorities import PriorityRule
from memory.replay.shape import ReplayShape
from memory.runs.run import OpenedRun, Place, read_settings
from tests.memory.road import SHAPE, packets
from tests.memory.sharded import CAPACITY, SomeActor, begin_sharded, places_on

VECTORS = GameShape("cart", 1, ChunkLimits((3,), "float32", 2, None, None))
PIXELS = GameShape("catch", 4, ChunkLimits((5, 2), "uint8", 3, None, None))
GAMES = VECTORS, PIXELS
SHAPES = [ChunkShape(8, game.history_length, 3, 0.9, 1.0) for game in GAMES]


def play(actor: SomeActor, game: int, steps: int, priority: float | None = None) -> None:
    """Push so many steps of an episode that does not end; frames tell the game and the step."""
    builder, drafts = ChunkBuilder(SHAPES[game], 1), []
    for step in range(steps):
        limits = GAMES[game].limits
        frame = np.full((1, *limits.frame_shape), step % 200 + game, limits.frame_dtype)
        flag = np.zeros(1, np.bool_)
        moments = Moments(frame, np.array([step % 2 + game]), np.ones(1), flag, flag, ~flag)
        drafts += builder.add(moments)
    actor.pusher.push(packets(drafts, priority))


@pytest.fixture
def places(redis_socket: str) -> list[Place]:
    """Four shards: 0 and 2 are of the first game, 1 and 3 of the second."""
    return places_on([redis_socket], 4)


def replay_of(places: Sequence[Place], run: OpenedRun, alpha: float = 1.0) -> GamesReplay:
    shape = ReplayShape(CAPACITY, SHAPE.chunk_length, 0, len(places))
    info = read_settings(*places[0])
    assert info is not None
    generator, of_run = np.random.default_rng(0), (run.epoch, info.fresh_since, run.elsewhere)
    replay = GamesReplay(GAMES, places, shape, *of_run, PriorityRule(alpha), generator)
    replay.load()
    replay.ingest()
    return replay


def drawn_game(replay: GamesReplay) -> int:
    game = replay.sample(8, 0.5).game
    assert game is not None
    return int(game[0])


def test_batches_are_of_one_game_each_and_take_turns(places: list[Place]) -> None:
    """With its own frames, actions, history and importance weights, from all of its shards."""
    run = begin_sharded(places)
    replay_of(places, run)
    actors = [SomeActor(places, number, run.epoch) for number in range(4)]
    for number, steps in enumerate((80, 40, 160, 320)):
        play(actors[number], number % 2, steps)
    replay = replay_of(places, begin_sharded(places, keep=True))
    size = replay.shape.slots * SHAPE.chunk_length
    shards: list[set[int]] = [set(), set()]
    held = replay.scalars()
    assert held["replay/transitions/cart"] + held["replay/transitions/catch"] == replay.fill > 500
    for turn in range(40):
        batch = replay.sample(32, 0.6, [0.6, 0.6])
        game = GAMES[turn % 2]
        assert batch.game is not None and set(batch.game.tolist()) == {turn % 2}
        assert batch.s_tm1.shape == (32, game.history_length, *game.limits.frame_shape)
        assert batch.s_t.dtype == game.limits.frame_dtype and set(batch.a_tm1.tolist()) <= {
            turn % 2,
            turn % 2 + 1,
        }
        of_shard, in_shard = np.divmod(batch.leaf, size)
        shards[turn % 2] |= set(of_shard.tolist())
        leaves = in_shard + 1  # of one actor's pushes, 1, 2, 3 ...
        weights = (leaves / held[f"replay/mean_priority/{game.game}"]) ** -0.6
        np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-5)
    assert shards == [{0, 2}, {1, 3}]
    for actor in actors:
        actor.lease.release()


def test_new_priorities_are_of_the_drawn_game_alone(places: list[Place]) -> None:
    run = begin_sharded(places)
    replay = replay_of(places, run)
    actors = [SomeActor(places, number, run.epoch) for number in range(4)]
    for number, actor in enumerate(actors):
        play(actor, number % 2, 60, 1.0)
    replay.ingest()
    before = replay.scalars()
    replay.sample(32, 0.5)
    batch = replay.sample(32, 0.5)
    replay.update(batch.leaf, batch.chunk_id, np.full(32, 9.0))
    after = replay.scalars()
    cart, catch = "replay/mean_priority/cart", "replay/mean_priority/catch"
    assert after[cart] == before[cart]
    rise = 8 * len(set(batch.leaf.tolist())) / before["replay/transitions/catch"]
    assert after[catch] == pytest.approx(before[catch] + rise, rel=1e-4)
    for actor in actors:
        actor.lease.release()


def test_a_game_that_nobody_has_played_yet_has_no_turn(places: list[Place]) -> None:
    run = begin_sharded(places)
    replay = replay_of(places, run)
    actors = [SomeActor(places, number, run.epoch) for number in range(2)]
    play(actors[1], 1, 60)
    replay.ingest()
    assert [drawn_game(replay) for _ in range(3)] == [1, 1, 1]
    play(actors[0], 0, 60)
    replay.ingest()
    assert [drawn_game(replay) for _ in range(4)] == [0, 1, 0, 1]
    for actor in actors:
        actor.lease.release()
