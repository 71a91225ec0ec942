"""What launchers check before anything starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from agents.base import AgentError
from agents.names import DISCRETE
from args import UserError, read_args
from envs.config import EnvConfig, EnvError
from envs.registry import check_reads
from kernels import choice
from memory.replay.priorities import SumTree
from tests.kernel_choice import using
from tests.processes import ROOT
from wiring.actor import build_lone_actor
from wiring.checks import _warn_of_details, _warn_of_unread, check_agent_fits, check_serial
from wiring.code import canonical
from wiring.endings import exit_on_errors
from wiring.learner import _learning_agent
from wiring.setting import build_agent, set_up_torch, setting_of, setting_of_run
from wiring.sources import check_length, check_store


@pytest.fixture
def processors_settings() -> Iterator[None]:
    """As they were, when a test ends."""
    threads = torch.get_num_threads()
    with using("compiled"):
        yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--memory-capacity 100 --learn-start 90 --batch-size 128", "cannot fill a batch of 128:"),
        ("--memory-capacity 1000 --learn-start 1000 --batch-size 1000", "its chunks hold 992."),
        (
            "--memory-capacity 40 --chunk-length 64 --learn-start 40",
            "--memory-capacity 40 is less than one chunk",
        ),
        ("--memory-capacity 1000 --learn-start 2000", "--learn-start 2000 exceeds --memory-capacity 1000."),
        ("--learn-start 10", "--learn-start 10 is less than one batch of 32."),
    ],
)
def test_a_replay_holds_what_is_to_be_learned_from(words: str, sentence: str) -> None:
    """An agent that has none takes the same parameters."""
    with pytest.raises(UserError, match=re.escape(sentence)):
        check_store(read_args(words.split()))
    check_store(read_args([*words.split(), "--agent", "a2c"]))


def test_an_event_log_is_for_a_replay() -> None:
    """Others never read it, whether or not there is one."""
    words = "--event-log-in none.events --agent".split()
    check_store(read_args([*words, "dqn"]))
    with pytest.raises(UserError, match="--event-log-in fills a replay, and ppo has none: leave it out."):
        check_store(read_args([*words, "ppo"]))


def test_a_run_lasts_until_it_learns() -> None:
    """Also without a replay; where an event log fills it, learning begins at once."""
    words = "--learn-start 300 --T-max 300".split()
    for agent in ("dqn", "ppo"):
        with pytest.raises(
            UserError, match="--T-max 300 ends the run before anything is learned: .* not 300."
        ):
            check_length(read_args([*words, "--agent", agent]))
        check_length(read_args([*words, "--agent", agent, "--T-max", "301"]))
    check_length(read_args([*words, "--event-log-in", "some.events"]))


def test_a_rollout_beyond_the_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Else a run of 600 steps has 2,048 of them, and nobody knows why."""
    words = "--agent ppo --rollout-length 128 --envs-per-actor 16 --learn-start 32 --T-max".split()
    with caplog.at_level("INFO"):
        check_length(read_args([*words, "2048"]))
        assert not caplog.text
        check_length(read_args([*words, "600"]))
    assert "One rollout has 2,048 steps: the run ends after it, beyond --T-max 600." in caplog.text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--game pong --agent ppo --envs-per-actor 512", "pong: a rollout may have .* 256 are the most"),
        (
            "--game pettingzoo:pong_v3 --agent dqn --resize 200 --chunk-length 4096",
            "pong_v3: a chunk may have",
        ),
    ],
)
def test_what_no_reader_accepts_is_not_played_for(words: str, sentence: str) -> None:
    """It was found out after a whole rollout, or after --learn-start, and at each start again."""
    with pytest.raises(AgentError, match=sentence):
        check_agent_fits(setting_of(read_args(words.split())))


@pytest.mark.usefixtures("processors_settings")
def test_weights_that_redis_does_not_take_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hung up on the learner, which took it for away and ended after --redis-patience seconds."""
    words = "--game minatar:breakout --torso impala_small --hidden-size 64 --agent dqn".split()
    _learning_agent(setting_of(read_args(words)), None)
    monkeypatch.setattr("learning.publishing.LARGEST_VALUE", 300_000)  # bytes: fewer than in float32
    with pytest.raises(AgentError, match="0 MiB, and a value in Redis may have 0: give a smaller --torso"):
        _learning_agent(setting_of(read_args(words)), None)
    _learning_agent(setting_of(read_args([*words, "--weights-dtype", "bfloat16"])), None)


@pytest.mark.parametrize("flags", ["--reward-smoothing 0.9", "--ckpt-dir some"])
def test_what_only_a_replay_can_take_is_refused(flags: str) -> None:
    words = f"--game probe:catch {flags} --agent"
    with pytest.raises(AgentError, match=flags.split()[0]):
        check_agent_fits(setting_of(read_args([*words.split(), "ppo"])))
    check_agent_fits(setting_of(read_args([*words.split(), "dqn"])))


@pytest.mark.parametrize(
    "given",
    [
        "--history-length 0",
        "--game CartPole-v1,probe:catch --trunk-size 0",
        "--game CartPole-v1,probe:catch --shards 1",
    ],
)
def test_what_is_left_to_the_run_contradicts_nothing(given: str) -> None:
    args = read_args(f"--game probe:catch {given}".split())
    of_learner = setting_of_run(args).args.shared()
    assert args.adopt(of_learner).shared() == of_learner
    with pytest.raises(UserError, match="--history-length is 7 here"):
        read_args(f"--game probe:catch {given} --history-length 7".split()).adopt(of_learner)


def test_an_actor_of_several_kinds_of_games_has_its_own_number_and_end() -> None:
    setting = setting_of_run(read_args("--game CartPole-v1,probe:catch --id-actor -1".split()))
    own = setting.with_args(id_actor=1, end_by="actors").of_actor(1)
    assert (own.args.id_actor, own.args.end_by) == (1, "actors")


@pytest.mark.parametrize("agent", ["dqn", "iqn", "ppo", "random"])
def test_a_reward_scale_is_for_agents_that_read_it(agent: str) -> None:
    """It was taken and had no effect, while a spec relied on it. A random actor adopts that of its run."""
    setting = setting_of(read_args(f"--game probe:catch --agent {agent} --reward-scale 0.05".split()))
    if agent in ("ppo", "random"):
        check_agent_fits(setting)
        return
    with pytest.raises(AgentError, match=f"--agent {agent} learns from rewards as they are"):
        check_agent_fits(setting)


@pytest.mark.parametrize(
    ("flag", "readers"),
    [
        ("--munchausen online", "iqn, dqn, double_dqn"),
        ("--noisy-epsilon-steps 1000", "iqn, rainbow"),
        ("--reset-every 1000", "iqn, rainbow"),
        ("--episodic", "a2c"),
        ("--standardise-advantages", "reinforce, a2c, ppo"),
        ("--normalise-observations", "reinforce, a2c, ppo"),
        ("--mirror", "naf"),
        ("--layer-norm", "naf"),
        ("--l2 0.1", "naf"),
    ],
)
def test_a_part_of_other_agents_is_refused(flag: str, readers: str) -> None:
    """It was taken and left out: rainbow learned without Munchausen, and nothing said so."""
    for agent in set(DISCRETE) - set(readers.split(", ")):
        setting = setting_of(read_args(f"--game probe:catch --agent {agent} {flag}".split()))
        sentence = f"{flag.split()[0]} is for {readers}: --agent {agent} does not use it."
        with pytest.raises(AgentError, match=f"^{sentence}$"):
            check_agent_fits(setting)
    for agent in {"random", *DISCRETE} & {"random", *readers.split(", ")}:
        check_agent_fits(setting_of(read_args(f"--game probe:catch --agent {agent} {flag}".split())))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--no-push", "--serial learns from what its actor plays: leave --no-push out."),
        ("--eval", "--serial learns from what its actor plays: leave --eval out."),
        ("--nb-actor 2", "--serial has one actor: leave --nb-actor 2 out; .* several games at a time."),
    ],
)  # fmt: skip
def test_one_process_plays_to_learn(words: str, sentence: str) -> None:
    """Without experience it waited for ever; more actors and --eval were taken and told of nowhere."""
    check_serial(read_args(words.split()))
    check_serial(read_args("--serial --nb-actor 1".split()))
    with pytest.raises(UserError, match=f"^{sentence}$"):
        check_serial(read_args(["--serial", *words.split()]))


def test_turns_of_rollouts_are_for_agents_that_have_any() -> None:
    for agent in ("ppo", "random"):
        check_agent_fits(setting_of(read_args(f"--game probe:catch --agent {agent} --sequential".split())))
    with pytest.raises(AgentError, match="^--sequential is for agents that learn from rollouts"):
        check_agent_fits(setting_of(read_args("--game probe:catch --agent iqn --sequential".split())))


def test_resets_are_not_more_frequent_than_updates() -> None:
    words = "--game probe:catch --replay-frequency 4 --reset-every 3".split()
    with pytest.raises(AgentError, match="^--reset-every 3 is less than one update, --replay-frequency 4.$"):
        check_agent_fits(setting_of(read_args(words)))


@pytest.mark.parametrize(
    ("every", "t_max", "learn_start", "first"),
    [
        (501, 1000, 100, 504),
        (20_000, 100_000, 80_000, 100_000),  # T_learner begins at 80,000
        (500, 1000, 500, 1000),
        (500, 999, 496, 500),  # the second update may cross
        (500, 1001, 98, 502),
    ],
)
def test_resets_leave_time_to_learn(every: int, t_max: int, learn_start: int, first: int) -> None:
    words = (
        f"--game probe:catch --replay-frequency 4 --reset-every {every} --learn-start {learn_start} --T-max"
    )
    sentence = (
        f"--reset-every {every} resets nothing: after --learn-start {learn_start} the first reset would be at"
        f" step {first}, when less than {every} steps of --T-max {t_max} remain."
    )
    with pytest.raises(AgentError, match=f"^{sentence}$"):
        check_agent_fits(setting_of(read_args([*words.split(), str(t_max)])))
    check_agent_fits(setting_of(read_args([*words.split(), str(first + every)])))


@pytest.mark.parametrize("flag", ["--env-args {}", "--resize 42", "--grey", "--info-masks"])
@pytest.mark.parametrize(
    ("game", "unread"),
    [
        ("pong", "--env-args --resize --grey --info-masks"),
        ("probe:catch", "--env-args --resize --grey --info-masks"),
        ("Taxi-v4", ""),
        ("probe:catch,Taxi-v4", ""),
        ("unity:3dball", "--resize --grey --info-masks"),
    ],
)
def test_a_flag_that_changes_nothing_in_a_game_is_refused(flag: str, game: str, unread: str) -> None:
    """ALE's difficulty as --env-args was taken, and not set. One of several games suffices."""
    args = read_args([*flag.split(), "--game", game])
    config, name = args.select(EnvConfig), flag.split()[0]
    if name not in unread.split():
        check_reads(config, args.games)
        return
    with pytest.raises(EnvError, match=f"{name} would change nothing in {game}: leave it out."):
        check_reads(config, args.games)


def test_who_learns_is_asked_for_such_flags() -> None:
    with pytest.raises(EnvError, match="--grey would change nothing in probe:catch"):
        check_agent_fits(setting_of(read_args("--game probe:catch --grey".split())))


@pytest.mark.parametrize("units", [10**11, 10**20])
def test_a_network_for_which_there_is_no_memory_is_refused(units: int) -> None:
    with pytest.raises(AgentError, match="This network cannot be built: "):
        check_agent_fits(setting_of(read_args(["--game", "probe:catch", "--hidden-size", str(units)])))


def test_a_replay_for_which_there_is_no_memory_is_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended, exit_on_errors():
        SumTree(10**15)
    assert ended.value.code == 2 and "There is not enough memory on this machine (" in caplog.text


@pytest.mark.parametrize(
    ("words", "acting", "threads"),
    [
        ("--hidden-size 16", False, 1),
        ("--hidden-size 512", False, 2),
        ("--hidden-size 512 --serial", False, 1),
        ("--hidden-size 512", True, 1),
        ("--hidden-size 512 --threads 3", True, 3),
        ("--hidden-size 16 --threads 3", False, 3),
    ],
)
def test_threads_follow_a_fixed_rule(
    words: str, acting: bool, threads: int, processors_settings: None
) -> None:
    """A large network takes all that PyTorch would, here 2; a small one, an actor and a serial run one."""
    torch.set_num_threads(2)
    setting = setting_of(read_args(f"--disable-cuda --game space_invaders {words}".split()))
    agent = build_agent(setting.args, setting.problem, learning=False)
    assert torch.get_num_threads() == 2
    set_up_torch(setting.args, agent, acting)
    assert torch.get_num_threads() == threads


def test_kernels_are_those_of_the_flag(processors_settings: None) -> None:
    for kind in ("plain", "compiled"):
        setting = setting_of(read_args(["--disable-cuda", "--game", "probe:catch", "--kernels", kind]))
        set_up_torch(setting.args, build_agent(setting.args, setting.problem, learning=False))
        assert choice.compiled_in_use() == (kind == "compiled")


def test_each_actor_begins_with_episodes_of_its_own() -> None:
    """And with the same ones, if it is started alike."""
    firsts = []
    for actor in ("0", "1", "0"):
        words = ["--game", "CartPole-v1", "--agent", "random", "--id-actor", actor, "--nb-actor", "2"]
        lone = build_lone_actor(setting_of(canonical(read_args(words))), lambda: False)
        firsts.append(lone._player.frames.copy())
        lone.close()
    assert np.array_equal(firsts[0], firsts[2]) and not np.isclose(firsts[0], firsts[1]).any()


@pytest.mark.parametrize(
    ("words", "unread"),
    [
        (
            "dqn --V-min 3 --atoms 11 --lr 0.1 --batch-size 8 --discount 0.9 --target-update 9",
            "--atoms, --V-min",
        ),
        ("iqn --epsilon 0.9 --noisy-std 0.5", "--epsilon"),
        ("ppo --num-tau-samples 8 --epochs 2", "--num-tau-samples"),
        ("dqn --intrinsic rnd --rnd-update-proportion 0.5", ""),
        ("rainbow --V-min -3 --reward-clip 0 --envs-per-actor 2 --nb-actor 2", ""),
    ],
)
def test_flags_that_the_agent_does_not_use_are_told(
    words: str, unread: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_agent_fits(setting_of(read_args(["--game", "probe:catch", "--agent", *words.split()])))
    told = [record.getMessage() for record in caplog.records if "does not use" in record.getMessage()]
    assert told == [f"--agent {words.split()[0]} does not use {unread}."] * bool(unread)


@pytest.mark.parametrize(
    ("given", "switch"),
    [("--munchausen-tau 0.1", "--munchausen"), ("--noisy-epsilon-until 0.2", "--noisy-epsilon-steps")],
)
def test_a_line_says_that_a_part_is_switched_off(
    given: str, switch: str, caplog: pytest.LogCaptureFixture
) -> None:
    words = ["--agent", "iqn", *given.split()]
    _warn_of_details(read_args(words))
    assert f"Without {switch} nothing reads {given.split()[0]}." in caplog.text
    caplog.clear()
    _warn_of_details(read_args([*words, switch, "online" if switch == "--munchausen" else "100"]))
    assert not caplog.text


@pytest.mark.parametrize("spec", sorted((ROOT / "specs").glob("[!l]*/*.yaml")), ids=lambda path: path.stem)
def test_what_a_shipped_spec_says_is_used(spec: Path, caplog: pytest.LogCaptureFixture) -> None:
    _warn_of_unread(read_args(["--spec", str(spec)]))
    _warn_of_details(read_args(["--spec", str(spec)]))
    assert not caplog.text
