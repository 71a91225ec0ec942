"""A film shows what the agent saw: replayed observations are equal bit for bit."""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from envs.atari import AlePlayback
from envs.config import EnvConfig, EnvError
from envs.gym import GymPlayback
from envs.registry import make_env, make_playback
from own_code.code import import_code

MakeConfig = Callable[..., EnvConfig]


def replay(config: EnvConfig, seed: int, steps: int) -> tuple[int, int]:
    """Plays one episode on both; returns its steps and its number of pictures."""
    env, film = make_env(config, [seed]), make_playback(config, seed)
    frames, _ = env.reset()
    assert np.array_equal(frames[0], film.first())
    generator = np.random.default_rng(seed)
    pictures = 0
    for step in range(1, steps + 1):
        action = int(generator.integers(18))
        frames, _, terminated, truncated, _ = env.step(np.array([action]))
        frame, screens = film.step(action)
        assert frame.dtype == frames.dtype
        assert np.array_equal(frames[0], frame), f"step {step}"
        assert all(screen.dtype == np.uint8 and screen.shape[2] == 3 for screen in screens)
        pictures += len(screens)
        if terminated[0] or truncated[0]:
            break
    return step, pictures


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
@pytest.mark.parametrize(
    "game",
    [
        "pong",
        "breakout",
        *(pytest.param(game, marks=pytest.mark.slow) for game in ("space_invaders", "ms_pacman")),
    ],
)
def test_ale_observations_are_identical_with_sticky_actions(
    game: str, seed: int, make_config: MakeConfig
) -> None:
    config = make_config(game)
    assert isinstance(make_playback(config, seed), AlePlayback)
    steps, pictures = replay(config, seed, 500)
    assert steps >= 100
    assert 4 * steps - 3 <= pictures <= 4 * steps  # a game may be over before the fourth frame


def test_ale_episodes_are_identical_to_their_last_frame(make_config: MakeConfig) -> None:
    lengths = [replay(make_config("breakout"), seed, 1500)[0] for seed in range(5)]
    assert max(lengths) < 1500


@pytest.mark.parametrize("repeat", [1, 2, 3])
def test_other_action_repeats(repeat: int, make_config: MakeConfig) -> None:
    assert replay(make_config("pong", action_repeat=repeat), 3, 150) == (150, 150 * repeat)


def test_the_frame_of_a_truncation(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envs.atari.games.episode_cap", lambda _: 403)
    monkeypatch.setattr("envs.atari.game.episode_cap", lambda _: 403)
    assert replay(make_config("pong"), 0, 200) == (101, 403)


def test_a_film_can_start_again(make_config: MakeConfig) -> None:
    film = make_playback(make_config("pong"), 9)
    rounds = []
    for _ in range(2):
        frames = [film.first()] + [film.step(2 + step % 4)[0] for step in range(40)]
        rounds.append(np.stack(frames))
    assert np.array_equal(rounds[0], rounds[1])


def test_probe(make_config: MakeConfig) -> None:
    config = make_config("probe:catch")
    env, film = make_env(config, [6]), make_playback(config, 6)
    assert np.array_equal(env.reset()[0][0], film.first())
    for action in (0, 1, 2, 2, 0, 1, 1, 0, 2):
        frame, (screen,) = film.step(action)
        assert np.array_equal(env.step(np.array([action]))[0][0], frame)
        assert np.array_equal(screen[::16, ::16, 0], frame)


@pytest.mark.parametrize(
    ("game", "actions"),
    [("CartPole-v1", np.array([0, 1, 1, 0])), ("Pendulum-v1", np.array([[1.0], [-2.0]], np.float32))],
)
def test_gymnasium(game: str, actions: npt.NDArray[np.float32], make_config: MakeConfig) -> None:
    config = make_config(game)
    env, film = make_env(config, [6]), make_playback(config, 6)
    assert isinstance(film, GymPlayback)
    assert np.array_equal(env.reset()[0][0], film.first())
    for action in actions:
        frame, (screen,) = film.step(action)
        assert np.array_equal(env.step(action[None])[0][0], frame)
        assert screen.ndim == 3


@pytest.mark.parametrize("game", ["pong", "probe:catch", "maze:1", "CartPole-v1"])
def test_every_kind_can_be_closed_and_made_again(game: str, make_config: MakeConfig) -> None:
    config = make_config(game, frame_width=40, frame_height=30)
    firsts = []
    for _ in range(2):
        with closing(make_playback(config, 5)) as film:
            firsts.append(film.first())
    assert np.array_equal(firsts[0], firsts[1])


DARK = """
from gymnasium import Env
from gymnasium.spaces import Box, Discrete


class Dark(Env):
    observation_space, action_space = Box(0, 1, (2,)), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, 0.0, False, False, {}


class Broken(Dark):
    def render(self):
        return {}["camera"]


class Grey(Dark):
    def render(self):
        import numpy as np

        return np.zeros((5, 4))
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Dark", "cannot draw itself: it has no render()."),
        ("Broken", "could not be drawn: KeyError: 'camera' (unlit.py, line 19)."),
        ("Grey", ":Grey gives [5, 4] of float64 instead of [h, w, 3] of uint8."),
    ],
)
def test_what_cannot_draw_itself_is_one_sentence(
    name: str, reason: str, tmp_path: Path, make_config: MakeConfig
) -> None:
    (tmp_path / "unlit.py").write_text(DARK)
    code = import_code(f"{tmp_path}/unlit.py:{name}")
    film = make_playback(make_config(code.name), 6)
    film.first()
    with pytest.raises(EnvError, match=re.escape(reason)):
        film.step(0)
