"""The page of advantages, from snapshots of real agents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from agents.base import Problem
from agents.naf import NafAgent, NafConfig
from args import Args, read_args
from envs.config import EnvDescription
from evaluation.advantage_surface import POINTS, surface_of
from evaluation.scenes import Scene
from event_log.records import LogHeader
from event_log.writer import EventLogWriter
from learning.saved.snapshot import save_snapshot
from wiring.advantage_surface import run
from wiring.setting import build_agent, setting_of

LOW, HIGH = (-1.0, -2.0, 0.0), (1.0, 0.5, 4.0)


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None is found, so that machines with and without one do the same."""
    monkeypatch.setenv("PATH", str(tmp_path))


def snapshot(folder: Path, *words: str) -> str:
    """A snapshot of an agent that never learned; its path."""
    setting = setting_of(read_args(["--hidden-size", "16", "--disable-cuda", *words]))
    agent = build_agent(setting.args, setting.problem, learning=False)
    path = folder / "last_model.pth"
    save_snapshot(path, {"settings": setting.args.shared(), "acting_weights": agent.acting_weights()})
    return str(path)


def naf(folder: Path) -> str:
    return snapshot(folder, "--agent", "naf", "--game", "Pendulum-v1")


def refused(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, *words: str) -> str:
    """The sentence with which these words are refused."""
    with pytest.raises(SystemExit) as ending:
        run(words)
    assert ending.value.code == 2
    return caplog.text + capsys.readouterr().err


@pytest.mark.parametrize("components", [[0, 2], [2, 1], [1]])
def test_a_surface_is_a_slice_through_the_greedy_action(components: list[int]) -> None:
    problem = Problem((1, 5), "float32", None, LOW, HIGH)
    agent = NafAgent(problem, Args().select(NafConfig), torch.device("cpu"), seed=1, learning=False)
    description = EnvDescription((5,), "float32", None, LOW, HIGH, 1, None, 1)
    taken = np.array([0.5, -1.5, 3.0], np.float32)
    s_t = np.random.default_rng(0).normal(size=(1, 5)).astype(np.float32)
    surface = surface_of(agent, Scene("step 7", s_t, None, taken), components, description)
    greedy = agent.greedy(s_t[None])[0]
    for values, component in zip(surface.values, components, strict=True):
        assert values.shape == (POINTS,)
        assert (values[0], values[-1]) == (LOW[component], HIGH[component])
    for place in [(0,) * len(components), (3, 11)[: len(components)], (40, 20)[: len(components)]]:
        action = greedy.copy()
        action[components] = [values[k] for values, k in zip(surface.values, place, strict=True)]
        expected = agent.advantages(s_t[None], action[None])[0, 0]
        assert surface.advantages[place[::-1]] == pytest.approx(expected, abs=1e-5)  # [Y, X]
    chosen, other = surface.marks
    assert chosen.action == pytest.approx(greedy[components])
    assert chosen.advantage == pytest.approx(0.0, abs=1e-6)
    assert other.action == pytest.approx(taken[components])
    assert surface.advantages.max() <= 1e-6


def test_own_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["--model", naf(tmp_path), "--path-to-results", str(tmp_path), "--every", "50", "--seed", "5"])
    page = (tmp_path / "advantage_surface_Pendulum-v1.html").read_text(encoding="utf-8")
    shown = [f"<h2>step {step}<small>chosen (" in page for step in (0, 50, 100, 150, 200)]
    assert shown == [True] * 4 + [False]  # after 200 steps the episode ends
    assert "No still picture was taken: none of chromium, " in capsys.readouterr().out


@pytest.mark.parametrize("env_args", ["", '{"g": 5.0}', None])
def test_frames_of_a_log(env_args: str | None, tmp_path: Path) -> None:
    log, page = tmp_path / "a.events", tmp_path / "pages" / "some.html"
    header = LogHeader("Pendulum-v1", (3,), "float32", None, (-2.0,), (2.0,), env_args=env_args)
    writer = EventLogWriter(log, header)
    frame = np.ones(3, np.float32)
    for _ in range(3):
        writer.add(0, frame, np.array([0.75], np.float32), -1.0, False, False)
    writer.end(0, frame)
    writer.close()
    run(["--model", naf(tmp_path), "--event-log", str(log), "--frames", "1", "--output", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "<h2>step 1 (of episode 0)<small>chosen (" in text
    assert "taken (0.75)</small>" in text


def test_mistakes_end_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert "Name a snapshot with --model" in refused(capsys, caplog, "--frames", "1")
    model = ("--model", naf(tmp_path), "--path-to-results", str(tmp_path))
    for words, sentence in (
        (("--dimensions", "0,1"), "--dimensions takes one or two different numbers from 0 to 0."),
        (("--dimensions", "a"), "'a' is not a list of numbers"),
        (("--every", "0"), "0 is no whole number of 1 or more."),
        (("--frames", ",".join(map(str, range(13)))), "A page shows at most 12 frames, not 13."),
        (("--frames", "3,200"), "The episode played has no step 200."),
        (("--event-log", str(tmp_path / "none")), "none"),
        (
            ("--images", str(tmp_path / "none.png")),
            "A picture says nothing to an agent that observes vectors.",
        ),
        (("--frame", "1"), "There is no flag --frame; did you mean"),
    ):
        assert sentence in refused(capsys, caplog, *model, *words)
    other = snapshot(tmp_path, "--game", "probe:catch")
    assert "Advantages of any action are seen by naf alone" in refused(capsys, caplog, "--model", other)


def test_the_command_of_the_documents(tmp_path: Path) -> None:
    """The module wires nothing itself: it runs the one that may."""
    module, root = "wiring.advantage_surface", Path(__file__).parents[2]
    words = ["--model", naf(tmp_path), "--frames", "1,2", "--path-to-results", str(tmp_path)]
    subprocess.run([sys.executable, "-m", module, *words], check=True, timeout=120, cwd=root)
    page = (tmp_path / "advantage_surface_Pendulum-v1.html").read_text(encoding="utf-8")
    assert "<h2>step 2<small>chosen (" in page
