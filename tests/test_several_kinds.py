"""Games that differ in frames and actions in one run: real processes learn two of them with one network."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from agents.base import Agent
from agents.dqn import DqnAgent
from agents.wrappers.kinds import KindsAgent
from args import read_args
from learning.saved.snapshot import load_snapshot
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client
from reporting.model_files import last_models
from reporting.tables import read_learning
from tests.processes import ROOT, run, start, until, wait
from wiring.checks import check_agent_fits, check_divided
from wiring.endings import USER_ERRORS
from wiring.setting import acting_agent, setting_of_run
from wiring.sources import check_store
from wiring.starting.game_specs import with_spec

GAMES = "CartPole-v1,probe:catch"
SPEC = "--spec", ROOT / "specs" / "multi" / "cartpole_catch.yaml"
FIRST, LAST = 5_000, 16_000  # steps at which the run is stopped, and those of the whole run
NAME = "CartPole-v1_probe_catch"


@pytest.mark.slow
def test_one_network_learns_two_kinds_of_games(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Pole and ball: stopped and resumed, evaluated game by game, shown game by game."""
    place = "--host-redis", redis_socket, "--path-to-results", tmp_path, "--T-max", LAST
    processes, logs = _start(tmp_path, "first", place)
    until(lambda: read_counters(client, Keys(GAMES)).steps > FIRST, lambda: logs[0].read_text())
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
    wait(processes, logs, 60)
    stopped = load_snapshot(last_models(tmp_path, NAME)[0])
    assert stopped["settings"]["shards"] == 2 and stopped["settings"]["history_length"] == 0
    wait(*_start(tmp_path, "second", place), 120)
    end = load_snapshot(last_models(tmp_path, NAME)[0])
    assert end["updates"] == (LAST - 2_000) // 2 > stopped["updates"] > 1_000 and end["refilled"] == 0
    _check_tables(tmp_path)
    playing = "--model", last_models(tmp_path, NAME)[0], "--path-to-results", tmp_path
    said = run("test_multiple_seed.py", *playing, "--evaluation-episodes", 20, log=tmp_path / "both.log")
    assert "CartPole-v1: 20 episodes" in said and "probe:catch: 20 episodes" in said
    assert _score(tmp_path, "probe_catch") >= 0.9
    assert _score(tmp_path, "CartPole-v1") >= 80.0  # random play: 22
    alone = run("test_multiple_seed.py", *playing, "--game", "probe:catch", log=tmp_path / "one.log")
    assert "CartPole" not in alone.partition("Saved")[0] and "probe:catch: " in alone


def _start(
    folder: Path, name: str, place: tuple[object, ...]
) -> tuple[list[subprocess.Popen[bytes]], list[Path]]:
    logs = [folder / f"{name}_{role}.log" for role in ("learner", "0", "1")]
    processes = [start("launch_learner.py", *SPEC, *place, log=logs[0])]
    for number in range(2):
        processes.append(start("launch_actor.py", *SPEC, *place, "--id-actor", number, log=logs[1 + number]))
    return processes, logs


def _check_tables(folder: Path) -> None:
    """Each game was played as much as the other; metrics and the page know of both."""
    steps = Counter[str]()
    with (folder / f"{NAME}.csv").open() as file:
        for row in csv.DictReader(file):
            steps[row["game"]] += int(row["length_agent_steps"])
    assert steps.keys() == {"CartPole-v1", "probe:catch"}
    assert max(steps.values()) - min(steps.values()) < 3_000
    last = list(read_learning(folder / f"learning_{NAME}.csv"))[-1]
    assert {"loss", "loss/CartPole-v1", "loss/probe:catch", "q/probe:catch"} <= last.metrics.keys()
    page = (folder / f"Reward_{NAME}.html").read_text()
    for game in steps:
        assert f"<h2>{game}<" in page and f"<h2>Actions in {game}<" in page


def _score(folder: Path, name: str) -> float:
    return float(json.loads((folder / f"evaluation_{name}.json").read_text())["mean"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--agent ppo", "--agent ppo learns from rollouts of games of one kind"),
        ("--agent naf", "CartPole-v1: This agent needs continuous actions"),
        ("--agent dqn --game probe:catch,Pendulum-v1", "Pendulum-v1: This agent needs discrete actions"),
        ("--intrinsic rnd", "--intrinsic is for games of one kind"),
        ("--save-replay", "--save-replay is for games of one kind, and CartPole-v1 and probe:catch differ."),
        ("--shards 3 --nb-actor 3", "give --shards 2, or a multiple of it, not 3"),
        ("--nb-actor 1", "2 games need at least as many actors: give --nb-actor 2 or more."),
        ("--serial", "2 games need at least as many actors"),
        ("--discount -1", "A --discount below 0 is for games by turns, which CartPole-v1 is not."),
    ],
)
def test_what_games_of_several_kinds_cannot_do_is_said(words: str, sentence: str) -> None:
    args = read_args(["--game", GAMES, "--hidden-size", "16", *words.split()])
    with pytest.raises(USER_ERRORS, match=re.escape(sentence)):
        check_divided(args)
        setting = setting_of_run(args)
        check_agent_fits(setting)
        check_store(setting.args)


@pytest.mark.parametrize("agent", ["dqn", "double_dqn", "iqn", "rainbow"])
def test_agents_of_values_fit(agent: str) -> None:
    """Without further flags: as many actors and shards as games, and a trunk."""
    setting = setting_of_run(read_args(["--game", GAMES, "--hidden-size", "16", "--agent", agent]))
    check_agent_fits(setting)
    check_store(setting.args)
    args = setting.args
    assert (args.nb_actor, args.shards, args.trunk_size, args.history_length) == (2, 2, 16, 0)
    assert [game.args.history_length for game in setting.games] == [1, 4]


def test_actors_explore_by_their_place_among_those_of_their_game() -> None:
    words = "--game", "CartPole-v1,probe:catch", "--agent", "dqn", "--hidden-size", "16", "--nb-actor", "4"
    setting = setting_of_run(read_args([*words, "--envs-per-actor", "2"]))
    agents = [acting_agent(setting, actor) for actor in range(4)]
    epsilons = [_epsilons(agent.agent) for agent in agents if isinstance(agent, KindsAgent)]
    assert len(epsilons) == 4
    assert epsilons[0] == epsilons[1] and epsilons[2] == epsilons[3], "both games alike"
    assert epsilons[0] + epsilons[2] == sorted(epsilons[0] + epsilons[2], reverse=True)
    assert epsilons[0][0] == pytest.approx(0.4)


def test_so_do_those_of_games_of_one_kind() -> None:
    words = "--game", "pong,breakout", "--agent", "dqn", "--hidden-size", "16", "--nb-actor", "2"
    setting = setting_of_run(read_args([*words, "--envs-per-actor", "2"]))
    first, second = (_epsilons(acting_agent(setting, actor)) for actor in range(2))
    assert first == second and first[0] > first[1] and first[0] == pytest.approx(0.4)


def _epsilons(agent: Agent) -> list[float]:
    assert isinstance(agent, DqnAgent)
    return agent._exploration.epsilons(2).tolist()


@pytest.mark.parametrize(
    ("game", "spec"),
    [
        (GAMES, "multi/cartpole_catch.yaml"),
        ("CartPole-v1", "classic/cartpole_dqn.yaml"),
        ("CartPole-v1,Acrobot-v1", None),
        ("probe:catch,CartPole-v1", None),
    ],
)
def test_one_terminal_takes_the_spec_of_all_games_together(game: str, spec: str | None) -> None:
    words = ["--game", game, "--agent", "dqn"]
    args, _ = with_spec(read_args(words), words)
    assert (args.spec or "").endswith(spec or "") and (args.spec is None) == (spec is None)
