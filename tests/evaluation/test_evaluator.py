import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from acting.episodes import FinishedEpisode
from agents.base import Problem
from agents.registry import agent_type
from envs.config import EnvConfig, EnvError
from envs.registry import describe_env, make_env, make_playback
from evaluation import state_plot
from evaluation.evaluator import episode_seeds, evaluate, progress_bar
from evaluation.film import HEIGHT, FilmRecorder, FrameMetric, PlayWindow
from evaluation.policies import AgentPolicy, Policy, baseline_policy
from evaluation.result import Evaluation, evaluation_text, write_evaluation
from evaluation.state_plot import StatePlot
from own_code import code as own_code
from own_code.code import OwnCode
from reporting.film import FilmError
from reporting.pages.graph import Graph, Line

CATCH, CARTPOLE = "probe:catch", "CartPole-v1"


def env_config(game: str, stuck: float = 300.0) -> EnvConfig:
    return EnvConfig(game, 4, 0.25, disable_saber_mode=False, max_stuck_time=stuck, stuck_is_terminal=False)


ASTERIX = env_config("asterix", stuck=1.0)  # 15 steps without a reward end it: soon, but not all at once


def agent_policy(config: EnvConfig, noisy: bool = True) -> AgentPolicy:
    """An untrained IQN with strong noise, so that other noise means other actions."""
    description = describe_env(config)
    history, torso = description.history_length, "data_efficient" if config == ASTERIX else "auto"
    kind = agent_type("iqn")
    hyper = kind.config_type(
        hidden_size=32, torso=torso, noisy_std=0.5, lr=1e-3, lr_end=None, adam_eps=1e-4, max_grad_norm=0.0,
        target_update=100, replay_frequency=4, precision="float32", compile="none", num_tau_samples=8,
        num_tau_prime_samples=8, num_quantile_samples=8, quantile_embedding_dim=16, kappa=1.0,
        munchausen="none", munchausen_alpha=0.9, munchausen_tau=0.03, munchausen_clip=-1.0,
        noisy_epsilon_steps=0, noisy_epsilon_until=0.5, reset_every=0, t_max=1000,
    )  # fmt: skip
    shape = (history, *description.frame_shape)
    problem = Problem(shape, description.frame_dtype, description.num_actions, None, None)
    return AgentPolicy(kind(problem, hyper, torch.device("cpu"), seed=0, learning=False), history, noisy)


def policy_of(name: str, config: EnvConfig) -> Policy:
    return agent_policy(config) if name == "agent" else baseline_policy(name, describe_env(config))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small networks gain nothing from more, and tests in other processes want their share."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Tape:
    """A watcher that keeps everything."""

    def __init__(self) -> None:
        self.seeds: dict[int, int] = {}
        self.actions: dict[int, list[Any]] = {}

    def start(self, episode: int, seed: int) -> None:
        self.seeds[episode], self.actions[episode] = seed, []

    def step(self, episode: int, action: Any, frame: Any) -> None:
        self.actions[episode].append(action)


def test_seeds_are_fixed_and_all_different() -> None:
    seeds = [episode_seeds(1, episode) for episode in range(200)]
    assert seeds == [episode_seeds(1, episode) for episode in range(200)]
    both = [value for pair in seeds for value in pair]
    assert len(set(both)) == 400
    assert min(both) >= 0 and max(both) < 2**31
    assert episode_seeds(2, 0) != episode_seeds(1, 0)


@pytest.mark.parametrize(
    ("config", "policy", "episodes"),
    [
        pytest.param(env_config(CARTPOLE), "random", 23, marks=pytest.mark.slow),
        (env_config(CARTPOLE), "agent", 23),
        pytest.param(env_config(CATCH), "agent", 23, marks=pytest.mark.slow),
        (ASTERIX, "agent", 4),
        pytest.param(ASTERIX, "random", 4, marks=pytest.mark.slow),
    ],
    ids=lambda value: value.game if isinstance(value, EnvConfig) else str(value),
)
def test_result_does_not_depend_on_the_number_of_environments(
    config: EnvConfig, policy: str, episodes: int
) -> None:
    tapes: dict[int, Tape] = {width: Tape() for width in (1, 3, 20)}
    results = {
        width: evaluate(policy_of(policy, config), config, episodes, seed=5, width=width, observer=tape)
        for width, tape in tapes.items()
    }
    assert results[1] == results[3] == results[20]
    assert tapes[1].actions == tapes[3].actions == tapes[20].actions
    assert [len(tapes[1].actions[episode]) for episode in range(episodes)] == list(results[1].lengths)
    assert len(set(results[1].lengths)) > 1 or config.game == CATCH
    assert results[1] != evaluate(policy_of(policy, config), config, episodes, seed=6, width=3)


def test_episodes_that_fill_no_tables_are_played_all_the_same() -> None:
    """An odd number of two seats: whole tables are played, and the result is that of any width."""
    config = EnvConfig(
        "pettingzoo:pong_v3", 4, 0.0, False, 300.0, False, max_episode_steps=5, resize=42, grey=True
    )
    policy = baseline_policy("random", describe_env(config))
    assert evaluate(policy, config, 3, 1, 8).lengths == (5, 5, 5)
    assert evaluate(policy, config, 4, 1, width=3).lengths == (5, 5, 5, 5), "a table less than environments"
    assert evaluate(policy, config, 1, 1, 8).lengths == (5,)


class SameNumber:
    """Two seats name a number twelve times; the same one is a point for both."""

    possible_agents = ("left", "right")

    def observation_space(self, seat: str) -> Box:
        return Box(0, 1, (2,), np.float32)

    def action_space(self, seat: str) -> Discrete:
        return Discrete(5)

    def reset(self, seed: int | None = None, options: object = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents, self._left = list(self.possible_agents), 12
        return self._seen(), {seat: {} for seat in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        seats = self.agents
        self._left -= 1
        points = dict.fromkeys(seats, float(actions["left"] == actions["right"]))
        is_over, seen = self._left == 0, self._seen()
        self.agents = [] if is_over else seats
        return seen, points, dict.fromkeys(seats, is_over), dict.fromkeys(seats, False), {}

    def close(self) -> None:
        """Nothing to end."""

    def _seen(self) -> dict[str, Any]:
        return {seat: np.zeros(2, np.float32) for seat in self.agents}


def test_a_table_that_is_not_asked_for_in_full_is_played_by_its_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its other seat would go on with the randomness of an episode before."""
    name = "same.py:SameNumber"
    monkeypatch.setitem(own_code._GIVEN, name, OwnCode(name, "", sys.modules[__name__], "SameNumber"))
    config = EnvConfig(name, 1, 0.0, False, 300.0, False)
    policy = baseline_policy("random", describe_env(config))
    results = [evaluate(policy, config, 5, seed=2, width=width).scores for width in (2, 4, 16)]
    assert results[0] == results[1] == results[2] and len(results[0]) == 5


def test_every_episode_is_the_one_that_its_seed_gives() -> None:
    """Played again one by one, each in an environment of its own."""
    config, tape = env_config(CARTPOLE), Tape()
    evaluation = evaluate(policy_of("random", config), config, 10, seed=0, width=4, observer=tape)
    for episode, seed in enumerate(evaluation.seeds):
        assert seed == tape.seeds[episode] == episode_seeds(0, episode).environment
        env = make_env(config, [seed])
        env.reset()
        steps = [env.step(np.array([action])) for action in tape.actions[episode]]
        assert sum(float(reward[0]) for _, reward, *_ in steps) == evaluation.scores[episode]
        ended = [bool(terminated[0] or truncated[0]) for _, _, terminated, truncated, _ in steps]
        assert ended == [False] * (len(steps) - 1) + [True]
        env.close()


def test_states_seen_are_those_of_the_playback() -> None:
    """Stacks of four frames, zeros before the first; through resets of single rows."""
    seen: dict[int, list[NDArray[Any]]] = {}

    class Looking:
        history_length = 4

        def begin(self, rows: int) -> None:
            self.episodes = [-1] * rows

        def start(self, row: int, seed: int) -> None:
            self.episodes[row] = seed
            seen[seed] = []

        def act(self, s_t: NDArray[Any]) -> NDArray[Any]:
            for episode, state in zip(self.episodes, s_t, strict=True):
                seen[episode].append(state.copy())
            return np.asarray(s_t[:, -1].sum((1, 2)) % 18, np.int64)

    tape = Tape()
    evaluation = evaluate(Looking(), ASTERIX, 3, seed=1, width=2, observer=tape)
    for episode in range(3):
        playback = make_playback(ASTERIX, evaluation.seeds[episode])
        frames = [playback.first()]
        frames += [playback.step(action)[0] for action in tape.actions[episode][:-1]]
        padded = [np.zeros_like(frames[0])] * 3 + frames
        states = seen[episode_seeds(1, episode).policy][: len(frames)]
        expected = [np.stack(padded[step : step + 4]) for step in range(len(frames))]
        np.testing.assert_array_equal(np.stack(states), np.stack(expected))


def test_progress_is_told_once_per_episode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And drawn on a terminal alone."""
    config = env_config(CATCH)
    told: list[FinishedEpisode] = []
    evaluate(policy_of("random", config), config, 7, seed=0, width=3, on_progress=told.append)
    with progress_bar(7) as show:
        evaluate(policy_of("random", config), config, 7, seed=0, width=3, on_progress=show)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar(7) as show:
        evaluate(policy_of("random", config), config, 7, seed=0, width=3, on_progress=show)
    assert [episode.length for episode in told] == [9] * 7
    assert "7/7" in capsys.readouterr().err


def test_statistics_and_file(tmp_path: Path) -> None:
    config = env_config("ALE/Pong-v5")
    evaluation = Evaluation(
        config,
        seeds=(1, 2, 3, 4),
        scores_5min=(-4.0,) * 4,
        scores_30min=(-6.0,) * 4,
        scores=(-21.0, 3.0, -1.0, -1.0),
        lengths=(9, 8, 7, 6),
        rooms=((1,), (2, 5), (1,), (1,)),
    )
    path = tmp_path / "evaluation_pong.json"
    write_evaluation(path, evaluation, {"agent": "iqn", "eval_noise": True, "t_actors": 1000})
    saved = json.loads(path.read_text())
    assert (saved["game"], saved["episodes"]) == ("pong", 4)
    assert (saved["mean"], saved["median"]) == (-5.0, -1.0)
    assert saved["standard_error"] == pytest.approx(np.std([-21, 3, -1, -1], ddof=1) / 2)
    assert saved["human_normalised"] == pytest.approx((-5 + 20.7) / (14.6 + 20.7))
    assert saved["world_record_normalised"] == pytest.approx((-5 + 20.7) / (21 + 20.7))
    assert saved["score_saber"]["mean"] == -5.0
    assert (saved["score_5min"]["mean"], saved["score_30min"]["mean"]) == (-4.0, -6.0)
    assert saved["scores"] == [-21.0, 3.0, -1.0, -1.0]
    assert (saved["rooms"], saved["all_rooms"]) == ([[1], [2, 5], [1], [1]], [1, 2, 5])
    assert "rooms visited: 1.25 per episode, at most 2; in all 1 2 5" in evaluation_text(evaluation)
    pairs = replace(evaluation, seats=2)
    write_evaluation(path, pairs, {})
    both = json.loads(path.read_text())
    assert both["standard_error"] == pytest.approx(np.std([-9, -1], ddof=1) / np.sqrt(2)), "of two games"
    assert [each["mean"] for each in both["by_seat"]] == [-11.0, 1.0]
    assert "seat 1                1.00" in evaluation_text(pairs)
    roomless = replace(evaluation, rooms=((),) * 4)
    write_evaluation(path, roomless, {})
    assert "rooms" not in json.loads(path.read_text()) and "rooms" not in evaluation_text(roomless)
    assert (saved["scores_5min"], saved["scores_30min"]) == ([-4.0] * 4, [-6.0] * 4)
    assert saved["lengths"] == [9, 8, 7, 6]
    assert saved["seeds"] == [1, 2, 3, 4]
    assert saved["settings"]["eval_noise"] is True
    assert saved["settings"]["proba_sticky_actions"] == 0.25
    assert saved["settings"]["disable_saber_mode"] is False
    assert evaluation.median_episode == 2
    text = evaluation_text(evaluation)
    assert "pong: 4 episodes" in text
    assert "44.48%" in text and "world record" in text
    means = {line[:14].strip(): line[14:26].strip() for line in text.splitlines()[2:5]}
    assert means == {"5 minutes": "-4.00", "30 minutes": "-6.00", "whole episode": "-5.00"}


def test_one_episode_of_an_unknown_game_has_no_error_and_no_reference(tmp_path: Path) -> None:
    config = env_config(CARTPOLE)
    evaluation = evaluate(policy_of("constant:1", config), config, 1, seed=0, width=8)
    write_evaluation(tmp_path / "e.json", evaluation, {})
    saved = json.loads((tmp_path / "e.json").read_text())
    assert saved["mean"] == saved["median"] == saved["scores"][0] == saved["score_5min"]["mean"]
    assert saved["standard_error"] is saved["human_normalised"] is saved["world_record_normalised"] is None
    text = evaluation_text(evaluation)
    assert "–" in text and "whole episode" in text
    assert "minutes" not in text and "human" not in text, "words of Atari alone"


def test_a_graph_shows_the_numbers_of_the_median_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of games that cannot draw themselves; images are for films."""
    drawn: list[Graph] = []
    monkeypatch.setattr(state_plot, "write_png", lambda path, title, graphs: drawn.extend(graphs))
    config = env_config(CARTPOLE)
    plot = StatePlot(tmp_path / "pole.png", config)
    evaluation = evaluate(policy_of("random", config), config, 5, seed=0, width=2, observer=plot)
    episode = plot.write(evaluation)
    assert evaluation.scores[episode] == sorted(evaluation.scores)[2]
    state, action = drawn
    assert len(state.parts) == 4 and len(action.parts) == 1
    curves = [part.y for part in (*state.parts, *action.parts) if isinstance(part, Line)]
    assert {len(curve) for curve in curves} == {evaluation.lengths[episode]}
    assert abs(curves[2][0]) < 0.05 and abs(curves[2][-1]) > 0.1, "the pole falls"
    monkeypatch.undo()
    plot.write(evaluation)
    assert np.asarray(cv2.imread(str(tmp_path / "pole.png"))).shape[2] == 3
    with pytest.raises(EnvError, match="film it, by --record .*pole.mp4"):
        StatePlot(tmp_path / "pole.png", env_config(CATCH))


def test_film_shows_the_median_episode(tmp_path: Path) -> None:
    config = env_config(CATCH)
    recorder = FilmRecorder(tmp_path / "films" / "catch.mp4", config)
    evaluation = evaluate(policy_of("random", config), config, 5, seed=0, width=2, observer=recorder)
    episode = recorder.write(evaluation)
    assert evaluation.scores[episode] == sorted(evaluation.scores)[2]
    film = cv2.VideoCapture(str(tmp_path / "films" / "catch.mp4"))
    pictures = []
    while (read := film.read())[0]:
        pictures.append(read[1])
    assert len(pictures) == evaluation.lengths[episode]
    assert np.ptp(np.stack(pictures)) > 100
    assert [each.name for each in (tmp_path / "films").iterdir()] == ["catch.mp4"]


def test_film_of_an_ale_game_has_every_emulator_frame(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "pong.mp4"
    recorder = FilmRecorder(path, ASTERIX)
    evaluation = evaluate(policy_of("random", ASTERIX), ASTERIX, 1, seed=0, width=1, observer=recorder)
    recorder.write(evaluation)
    assert caplog.messages == [], "the replay is the episode"
    film = cv2.VideoCapture(str(path))
    assert film.get(cv2.CAP_PROP_FRAME_COUNT) == 4 * evaluation.lengths[0]
    assert film.get(cv2.CAP_PROP_FPS) == 60
    assert (film.get(cv2.CAP_PROP_FRAME_WIDTH), film.get(cv2.CAP_PROP_FRAME_HEIGHT)) == (480, 630)


def test_film_with_a_curve_of_the_frames_that_were_seen(tmp_path: Path) -> None:
    config, asked = env_config(CATCH), []

    def values(frames: NDArray[Any]) -> NDArray[Any]:
        asked.append(frames)
        return np.arange(len(frames), dtype=np.float32)

    path = tmp_path / "catch.mp4"
    recorder = FilmRecorder(path, config, FrameMetric("new", values))
    evaluation = evaluate(policy_of("random", config), config, 1, seed=0, width=1, observer=recorder)
    recorder.write(evaluation)
    (frames,) = asked
    assert frames.shape == (evaluation.lengths[0], *describe_env(config).frame_shape)
    plain = FilmRecorder(tmp_path / "plain.mp4", config)
    plain.write(evaluate(policy_of("random", config), config, 1, seed=0, width=1, observer=plain))
    film, bare = cv2.VideoCapture(str(path)), cv2.VideoCapture(str(tmp_path / "plain.mp4"))
    assert film.get(cv2.CAP_PROP_FRAME_COUNT) == bare.get(cv2.CAP_PROP_FRAME_COUNT)
    heights = [each.get(cv2.CAP_PROP_FRAME_HEIGHT) for each in (film, bare)]
    assert heights[0] == heights[1] + HEIGHT


def test_other_films_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FilmError, match="does not end in .mp4"):
        FilmRecorder(tmp_path / "film.avi", ASTERIX)


def test_no_window_without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FilmError, match="needs a display and there is none"):
        PlayWindow(ASTERIX)
