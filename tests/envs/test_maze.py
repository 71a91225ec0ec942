"""Mazes: the contract of envs/contract.py, the rules, the pictures, and machines that cannot draw them."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.registry import describe_env, make_env, make_playback
from tests.envs import test_contract
from tests.processes import ROOT

if TYPE_CHECKING:
    from envs.maze.game import MazeGame

MakeConfig = Callable[..., EnvConfig]
Picture = np.typing.NDArray[np.uint8]

test_shapes_and_dtypes_are_as_described = test_contract.test_shapes_and_dtypes_are_as_described
test_same_seeds = test_contract.test_same_seeds_give_the_same_episodes_and_neighbours_differ
test_neighbours = test_contract.test_an_environment_does_not_depend_on_its_neighbours
test_a_full_reset = test_contract.test_a_full_reset_starts_again_from_the_same_seeds
test_next_step_autoreset = test_contract.test_next_step_autoreset
test_an_ended_environment_ignores_its_action = test_contract.test_an_ended_environment_ignores_its_action
test_a_partial_reset = test_contract.test_a_partial_reset_restarts_the_marked_ones_alone
test_a_pending_autoreset = test_contract.test_a_partial_reset_cancels_a_pending_autoreset
test_returned_arrays_are_not_written_to_again = test_contract.test_returned_arrays_are_not_written_to_again
test_wrong_actions_are_refused = test_contract.test_wrong_actions_are_refused
test_wrong_resets_are_refused = test_contract.test_wrong_resets_are_refused
test_seeds_of_any_actor_are_accepted = test_contract.test_seeds_of_any_actor_are_accepted

RIGHT, LEFT, AHEAD, HALF_BACK, REST = np.array([[1, 0], [-1, 0], [0, 1], [0, -0.5], [0, 0]], np.float32)


@pytest.fixture
def config(make_config: MakeConfig) -> EnvConfig:
    return make_config("maze:1", frame_width=40, frame_height=30)


@pytest.fixture
def repeat() -> int:
    """Moves of a step, unless a test names others as its parameter."""
    return 1


@pytest.fixture
def game(request: pytest.FixtureRequest, make_config: MakeConfig, repeat: int) -> Iterator[MazeGame]:
    """The mission that a test names as its parameter, by default the first."""
    name = getattr(request, "param", "maze:1")
    config = make_config(name, action_repeat=repeat, frame_width=40, frame_height=30)
    make_env(config, [0]).close()  # imports MiniWorld in its own way, so that it wants no display
    from envs.maze.game import MazeGame
    from envs.maze.world import View

    view = View(40, 30)
    yield MazeGame(config, view)
    view.close()


def redness(picture: Picture) -> np.typing.NDArray[np.bool_]:
    """Where the cube is seen, [h, w]."""
    red, green, blue = np.moveaxis(picture.astype(int), -1, 0)
    seen: np.typing.NDArray[np.bool_] = red > 2 * np.maximum(green, blue) + 40
    return seen


def face_the_cube(game: MazeGame) -> None:
    way = game.world.cube.pos - game.world.agent.pos
    game.world.agent.dir = np.arctan2(-way[2], way[0])


def reach(game: MazeGame) -> float:
    """Metres between the centres below which the cube is found: a move and a tenth before they touch."""
    return float(game.world.agent.radius + game.world.cube.radius + 1.1 * 0.25)


def face_from_afar(game: MazeGame, metres: float) -> None:
    """Puts the agent near a wall of a room of 8 m, and the cube `metres` ahead."""
    game.world.agent.pos = np.array([1.5, 0.0, 4.0])
    game.world.cube.pos = game.world.agent.pos + np.array([metres, 0.0, 0.0])
    face_the_cube(game)


def turn_to_the_cube(game: MazeGame) -> np.typing.NDArray[np.float32]:
    """The action of one who knows where the cube is: turn to it, and go when it is ahead."""
    way = game.world.cube.pos - game.world.agent.pos
    right = game.world.agent.dir - np.arctan2(-way[2], way[0])
    turn = (np.degrees(right) + 180) % 360 - 180
    return np.array([np.clip(turn / 15, -1, 1), float(abs(turn) < 15)], np.float32)


def distance(game: MazeGame) -> float:
    return float(np.linalg.norm(game.world.cube.pos - game.world.agent.pos))


def test_description(make_config: MakeConfig) -> None:
    assert describe_env(make_config("maze:2")) == EnvDescription(
        frame_shape=(120, 160, 3),
        frame_dtype="uint8",
        num_actions=None,
        action_low=(-1.0, -1.0),
        action_high=(1.0, 1.0),
        frames_per_step=4,
        frames_per_second=None,
        history_length=1,
        mirrored_action=(-1.0, 1.0),
    )


def test_the_cube_is_never_found_from_the_start(game: MazeGame) -> None:
    for seed in range(150):
        game.begin(seed)
        assert not game.world.cube_found()


def test_who_knows_where_the_cube_is_finds_it_in_time_and_is_rewarded_once(game: MazeGame) -> None:
    for seed in range(25):
        game.begin(seed)
        steps = [game.step(turn_to_the_cube(game))]
        while not (steps[-1].terminated or steps[-1].truncated):
            steps.append(game.step(turn_to_the_cube(game)))
        assert steps[-1].terminated
        assert [step.reward for step in steps] == [0.0] * (len(steps) - 1) + [1.0]


@pytest.mark.parametrize(
    ("game", "repeat", "last"),
    [("maze:1", 1, 60), ("maze:1", 4, 15), ("maze:2", 1, 150), ("maze:2", 4, 38), ("maze:2x2", 1, 160)],
    indirect=["game"],
)
def test_the_time_limit_counts_moves_and_truncates(game: MazeGame, last: int) -> None:
    game.begin(0)
    steps = [game.step(RIGHT) for _ in range(last)]
    assert not any(step.terminated for step in steps)
    assert [step.truncated for step in steps] == [False] * (last - 1) + [True]


@pytest.mark.parametrize(("repeat", "last"), [(1, 60), (4, 15)])
def test_a_cube_found_at_the_last_moment_is_found(game: MazeGame, last: int) -> None:
    game.begin(0)
    for _ in range(last - 1):
        game.step(RIGHT)
    game.world.cube.pos = game.world.agent.pos
    assert game.step(RIGHT)[1:] == (1.0, True, False)


def test_turn_and_move(game: MazeGame) -> None:
    game.begin(1)
    face_the_cube(game)
    ahead = game.step(REST).frame
    columns = np.flatnonzero(redness(ahead).any(axis=0))
    assert columns.size, "the cube is in sight"
    assert abs(columns.mean() - 19.5) <= 1, "in the middle"
    right = game.step(RIGHT).frame
    assert np.flatnonzero(redness(right).any(axis=0)).mean() < 15, "to the right: it goes to the left"
    assert np.abs(game.step(LEFT).frame.astype(int) - ahead).mean() < 1, "and back"
    before = distance(game)
    game.step(AHEAD)
    assert distance(game) == pytest.approx(before - 0.25)
    game.step(HALF_BACK)
    assert distance(game) == pytest.approx(before - 0.225)


@pytest.mark.parametrize("repeat", [1, 4])
def test_a_step_repeats_its_move_and_backwards_is_slow(game: MazeGame, repeat: int) -> None:
    game.begin(0)
    face_from_afar(game, 4.0)
    for action, metres in ((AHEAD, -0.25), (HALF_BACK, 0.025), (HALF_BACK, 0.025)):
        before = distance(game)
        game.step(action)
        assert distance(game) == pytest.approx(before + metres * repeat)


@pytest.mark.parametrize(("repeat", "last"), [(1, 7), (4, 2)])
def test_a_cube_found_in_the_middle_of_a_step_ends_it(game: MazeGame, last: int) -> None:
    game.begin(0)
    face_from_afar(game, reach(game) + 6.5 * 0.25)
    steps = [game.step(AHEAD) for _ in range(last)]
    assert [step[1:] for step in steps] == [(0.0, False, False)] * (last - 1) + [(1.0, True, False)]
    assert distance(game) == pytest.approx(reach(game) - 0.5 * 0.25), "not one move more"


def test_the_mirror_image_of_a_step_is_the_step_of_the_mirror_image(game: MazeGame) -> None:
    """Seen along the diagonal, a room without its cube is its own mirror image."""
    game.begin(1)
    game.world.agent.pos, game.world.cube.pos = np.array([6.0, 0.0, 6.0]), np.array([7.0, 0.0, 7.0])
    pictures = []
    for turn in (1.0, -1.0):
        game.world.agent.dir = 0.75 * np.pi
        pictures.append(game.step(np.array([turn, 0.0], np.float32)).frame.astype(int))
    assert np.abs(pictures[0][:, ::-1] - pictures[1]).mean() < 0.5
    assert np.abs(pictures[0] - pictures[1]).mean() > 2, "which is not the same picture"


@pytest.mark.parametrize("game", ["maze:1", "maze:3"], indirect=True)
def test_walls_stop_the_agent(game: MazeGame) -> None:
    for seed in range(5):
        game.begin(seed)
        for _ in range(60):
            game.step(np.array([0.1, 1.0], np.float32))
            assert any(room.point_inside(game.world.agent.pos) for room in game.world.rooms)


def test_four_in_one_process_draw_what_one_draws(make_config: MakeConfig) -> None:
    config, seeds = make_config("maze:3", frame_width=40, frame_height=30), [3, 1, 4, 15]
    actions = np.random.default_rng(0).uniform(-1, 1, (20, 4, 2)).astype(np.float32)

    def played(rows: list[int]) -> Picture:
        env = make_env(config, [seeds[row] for row in rows])
        frames = [env.reset()[0], *(env.step(now[rows])[0] for now in actions)]
        env.close()
        return np.stack(frames, axis=1)

    alone = [played([row]) for row in range(4)]
    assert np.array_equal(played([0, 1, 2, 3]), np.concatenate(alone))


def test_frames_take_the_size_that_is_asked_for(make_config: MakeConfig) -> None:
    for width, height in ((160, 120), (84, 84)):
        env = make_env(make_config("maze:2", frame_width=width, frame_height=height), [0])
        assert env.reset()[0].shape == (1, height, width, 3)
        env.close()


def test_closing_frees_the_context(make_config: MakeConfig) -> None:
    """A picture of 640 x 480 has 1.8 MB in OpenGL and 1.2 MB here."""
    config = make_config("maze:1", frame_width=640, frame_height=480)
    for number in range(25):
        make_env(config, [0]).close()
        if number == 4:
            before = resident_megabytes()
    assert resident_megabytes() - before < 20


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def test_a_film_shows_what_was_played(make_config: MakeConfig) -> None:
    config = make_config("maze:2", frame_width=40, frame_height=30)
    env, film = make_env(config, [5]), make_playback(config, 5)
    assert np.array_equal(film.first(), env.reset()[0][0])
    for turn in (0.0, 0.5, 1.0, 0.2):
        action = np.array([turn, 1.0], np.float32)
        frame, (picture, *others) = film.step(action)
        assert len(others) == 5 and all(np.array_equal(picture, other) for other in others), (
            "held for a while"
        )
        assert np.array_equal(frame, env.step(action[None])[0][0])
        assert picture.shape == (480, 640 + 480, 3)
        assert (picture[:, 640:] == (255, 220, 0)).all(axis=-1).any(), "the path"
    env.close()


IMPORTS = "from envs.config import EnvConfig, EnvError; from envs.registry import make_env;\n"


def test_settings_of_the_user_stay(config: EnvConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        f"import os; {IMPORTS}"
        "make_env(EnvConfig('maze', 4, 0.0, False, 1.0, False), [0]).reset();"
        "print(os.environ['LP_NUM_THREADS'], os.environ['PYGLET_HEADLESS'])"
    )
    monkeypatch.setenv("LP_NUM_THREADS", "2")
    assert python(code).stdout.split() == ["2", "1"]


def test_without_the_package_mazes_are_described_and_not_made(
    config: EnvConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "miniworld.miniworld", None)
    assert describe_env(config).frame_shape == (30, 40, 3)
    with pytest.raises(EnvError, match=r"`EXTRAS=maze bash scripts/setup.sh`"):
        make_env(config, [0])


def test_without_opengl_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        f"import sys; {IMPORTS}"
        "assert not {'pyglet', 'miniworld'} & sys.modules.keys()\n"
        "try: make_env(EnvConfig('maze', 4, 0.0, False, 1.0, False), [0])\n"
        "except EnvError as error: print(error)"
    )
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/dev/null")
    run = python(code)
    assert run.stdout.startswith("Mazes cannot be drawn here"), run.stderr


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
