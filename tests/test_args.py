"""Parameters: the seed's flags and defaults, words for booleans, spec files, sentences for mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.settings import TORSOS as CHOICES
from args import Args, UserError, read_args
from memory.server.connection import RedisConfig
from models.layers import TORSOS
from own_code.code import KINDS
from parameters.declare import plain_type

ROOT = Path(__file__).parents[1]
SPECS = sorted(path for path in (ROOT / "specs").rglob("*.yaml") if path.parent.name != "lab")

SEED_DEFAULTS: dict[str, bool | int | float | str | None] = {
    "--seed": 123,
    "--disable-cuda": False,
    "--game": "space_invaders",
    "--proba-sticky-actions": 0.25,
    "--T-max": 50_000_000,
    "--action-repeat": 4,
    "--hidden-size": 512,
    "--noisy-std": 0.1,
    "--model": None,
    "--memory-capacity": 1_000_000,
    "--replay-frequency": 4,
    "--priority-weight": 0.4,
    "--multi-step": 3,
    "--discount": 0.99,
    "--target-update": 32_000,
    "--reward-clip": 1,
    "--lr": 5e-5,
    "--adam-eps": 3.125e-4,
    "--batch-size": 32,
    "--learn-start": 80_000,
    "--evaluation-interval": 500_000,
    "--evaluation-episodes": 100,
    "--evaluation-size": 500,
    "--log-interval": 25_000,
    "--render": False,
    "--disable-cudnn": False,
    "--host-redis": "localhost",
    "--port-redis": 6379,
    "--weight-synchro-frequency": 400,
    "--length-actor-buffer": 1000,
    "--nb-actor": 1,
    "--queue-size": 5,
    "--kappa": 1.0,
    "--num-tau-samples": 64,
    "--num-tau-prime-samples": 64,
    "--num-quantile-samples": 32,
    "--quantile-embedding-dim": 64,
    "--rainbow-only": False,
    "--atoms": 51,
    "--V-min": -10,
    "--V-max": 10,
    "--gpu-number": 0,
    "--disable-SABER-mode": False,
    "--synchronize-actors-with-learner": True,
    "--path-to-results": "results",
    # Left to the game, the agent and the process: 4 frames for images, 0.2 for IQN, the first actor.
    "--history-length": 0,
    "--priority-exponent": None,
    "--id-actor": 0,
}
"""Flags of valeoai/rainbow-iqn-apex, args.py."""

ELSEWHERE: dict[str, tuple[str, object]] = {
    "--game": ("pong", "pong"),
    "--model": ("some.pth", "some.pth"),
    "--host-redis": ("10.0.0.1", "10.0.0.1"),
    "--path-to-results": ("elsewhere", "elsewhere"),
    "--proba-sticky-actions": ("0", 0),
    "--priority-exponent": ("0.5", 0.5),
    "--priority-weight": ("0.5", 0.5),
    "--discount": ("0.5", 0.5),
    "--learn-start": ("80001", 80_001),
    "--V-min": ("-20", -20),
    "--id-actor": ("-1", -1),
}
"""A word on the command line and its value, where the default plus one would not do."""


def _field(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


@pytest.mark.parametrize("flag", SEED_DEFAULTS)
def test_every_flag_of_the_seed_is_accepted_with_its_default(flag: str) -> None:
    default = SEED_DEFAULTS[flag]
    assert getattr(read_args([]), _field(flag)) == default
    value: object
    if isinstance(default, bool):
        word, value = str(not default), not default
    elif flag in ELSEWHERE:
        word, value = ELSEWHERE[flag]
    else:
        assert isinstance(default, int | float)
        word, value = str(default + 1), default + 1
    with warnings.catch_warnings(action="ignore"):
        assert getattr(read_args([flag, word]), _field(flag)) == value


def test_the_short_name_of_the_port() -> None:
    assert read_args(["-p_red", "6380"]).port_redis == 6380


@pytest.mark.parametrize(("word", "value"), [("True", True), ("1", True), ("False", False), ("0", False)])
def test_words_for_booleans(word: str, value: bool) -> None:
    assert read_args(["--render", word]).render is value
    assert read_args(["--render"]).render


def test_the_torsos_of_the_settings_are_those_of_the_networks() -> None:
    """Settings cannot import networks: --help would wait for PyTorch."""
    assert sorted(CHOICES) == sorted(TORSOS)


def test_a_spec_file_is_overridden_by_flags(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("lr: 1e-3\nT-max: 1000\nbatch_size: 16\nrender: true\n")
    args = read_args(["--batch-size", "8", "--spec", str(spec)])
    assert (args.lr, args.T_max, args.batch_size, args.render) == (1e-3, 1000, 8, True)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_every_shipped_spec_is_read_and_names_its_source(path: Path) -> None:
    read_args(["--spec", str(path)])
    first = path.read_text().splitlines()[0]
    assert re.match(r"# .*(arXiv \d{4}\.\d{5}|et al\. \d{4}|https://)", first), first


def test_a_flag_is_called_as_where_it_stands(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("lr: fast\nbatch-size: 8\n")
    with pytest.raises(UserError, match=re.escape(f"lr in {spec} got 'fast'")):
        read_args(["--spec", str(spec)])
    with pytest.raises(UserError, match=r"^--batch-size got '0'"):
        read_args(["--spec", str(spec), "--lr", "1", "--batch-size", "0"])


def test_a_number_in_a_spec_may_stand_for_text(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("head-sizes: 64")
    assert read_args(["--spec", str(spec)]).head_sizes == "64"


def test_a_mistake_in_a_spec_names_file_and_key(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    for text, sentence in [
        ("learn-strat: 100", "names an unknown parameter learn-strat; did you mean learn-start?"),
        ("learning_rate: 1", "names an unknown parameter learning_rate; did you mean lr?"),
        ("spec: other.yaml", "names another file of flags (spec), which only experiments of run_lab.py may."),
        ("T_max: 1e5", f"T_max in {spec} got '1e5': input should be a valid integer: write 100000."),
        ("T-max: true", f"T-max in {spec} got True: input should be a number."),
        (
            "game: [pong, breakout]",
            f"game in {spec} got ['pong', 'breakout']: input should be text: write pong,breakout.",
        ),
        ("[1, 2]", "must hold `name: value` lines."),
        ("a: [", "cannot be read at line 1, column 5: while parsing"),
    ]:
        spec.write_text(text)
        with pytest.raises(UserError, match=re.escape(sentence)) as caught:
            read_args(["--spec", str(spec)])
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"nowhere\.yaml cannot be read"):
        read_args(["--spec", "nowhere.yaml"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--V-min 10", "--V-min 10.0 must be below --V-max 10.0."),
        ("--nb-actor 2 --gpu-numbers 0,1", "--gpu-numbers must name 3 GPUs"),
        ("--rainbow-only --agent iqn", "--rainbow-only contradicts --agent iqn."),
    ],
)
def test_values_that_do_not_fit_together(words: str, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        read_args(words.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--lr fast", "--lr got 'fast': input should be a valid number"),
        ("--V-max inf", "--V-max got 'inf': input should be a finite number."),
        ("--discount 2", "--discount got '2': input should be less than or equal to 1."),
        ("--batch-size 0", "--batch-size got '0': input should be greater than or equal to 1."),
        ("--run a{b", "--run got 'a{b'"),
        ("--torso impala_x3", "--torso got 'impala_x3': choose one of auto, nature, "),
        ("--end-by both", "--end-by got 'both': choose one of learner, actors."),
        ("--render maybe", "--render got 'maybe': input should be True, False, 1 or 0."),
        ("--gpu-numbers 0;1", "--gpu-numbers got '0;1'"),
        ("--seed", "argument --seed: expected one argument."),
        ("--learn-strat 5", "There is no flag --learn-strat; did you mean --learn-start?"),
        ("--learn 5", "There is no flag --learn"),
        ("--learning-rate 5", "There is no flag --learning-rate; did you mean --lr?"),
        ("--learningrate 5", "There is no flag --learningrate; did you mean --lr?"),
        ("--T-max 1e5", "--T-max got '1e5': input should be a valid integer: write 100000."),
        ("--T-max many", "--T-max got 'many': input should be a valid integer, unable to parse"),
        ("pong", "unrecognized arguments: pong."),
    ],
)
def test_a_bad_value_is_named(words: str, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        read_args(words.split())


def test_what_follows_from_other_parameters() -> None:
    args = read_args(["--rainbow-only", "1", "--length-actor-buffer", "5", "--game", "ALE/Pong-v5"])
    assert (args.agent, args.chunk_length, args.run_name, args.file_name) == (
        "rainbow",
        5,
        "ALE/Pong-v5",
        "ALE_Pong-v5",
    )


@pytest.mark.parametrize(
    ("words", "warned"),
    [
        ("--nb-actor 5", "More than 4 actors"),
        ("--synchronize-actors-with-learner False", "One actor without synchronisation"),
        ("--nb-actor 4", None),
        ("--nb-actor 5 --synchronize-actors-with-learner 0", None),
    ],
)
def test_warnings_of_synchronisation(words: str, warned: str | None) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_args(words.split())
    assert [warned in str(warning.message) for warning in caught if warned] == ([True] if warned else [])
    assert len(caught) == (warned is not None)


def test_an_actor_adopts_what_it_was_not_given() -> None:
    """Also after the journey through Redis as JSON; its own settings stay."""
    learner = read_args("--discount 0.9 --lr 1e-3 --hidden-size 64 --batch-size 8".split())
    settings = json.loads(json.dumps(learner.shared()))
    actor = read_args("--discount 0.9 --id-actor 3 --envs-per-actor 8".split()).adopt(settings)
    assert (actor.discount, actor.hidden_size, actor.id_actor, actor.envs_per_actor) == (0.9, 64, 3, 8)
    assert (actor.lr, actor.batch_size) == (Args().lr, Args().batch_size), "these concern the learner alone"
    assert actor.shared() == learner.shared()


def test_a_contradiction_names_both_values() -> None:
    settings = read_args(["--discount", "0.9"]).shared()
    with pytest.raises(UserError, match=r"--discount is 0\.95 here but 0\.9 at the learner of run 'pong'\."):
        read_args(["--discount", "0.95", "--run", "pong"]).adopt(settings)


@pytest.mark.parametrize("name", Args.model_fields)
def test_only_shared_parameters_are_taken_from_others(name: str) -> None:
    """Of Redis and of a snapshot; also where the value is the default."""
    settings = Args().shared()
    field = Args.model_fields[name]
    if name in settings:
        assert getattr(Args().with_defaults(settings, "It"), name) == settings[name]
        return
    own = "/any/new/file" if plain_type(field.annotation) is str else field.default
    if name == "run":  # a snapshot's origin: known, and not taken
        assert Args().with_defaults({**settings, name: own}, "It").run == Args().run
        return
    for value in (own, field.default):
        with pytest.raises(UserError, match=rf"^It sets '{name}', which no learner shares"):
            Args().with_defaults({**settings, name: value}, "It")


@settings(deadline=None)
@given(
    name=st.sampled_from(sorted(Args().shared())),
    value=st.one_of(st.text(), st.from_regex(r"\w*:\w*", fullmatch=True), st.lists(st.text()), st.floats()),
)
def test_no_shared_value_is_a_path_or_code(name: str, value: object) -> None:
    """Whatever a stranger writes: text is one of a few words or a game that this project plays itself."""
    try:
        found = Args().with_defaults({name: value}, "It")
    except UserError as error:
        assert str(error).startswith("It ")
        return
    taken = getattr(found, name)
    if name in ("agent", "game"):  # looked up in tables of names
        assert all(":" not in each or each.partition(":")[0] in KINDS for each in taken.split(","))
    elif isinstance(taken, str):
        assert "/" not in taken and "\\" not in taken and ":" not in taken


@pytest.mark.parametrize("game", ["antigravity:Env-v0", "pong,antigravity:Env-v0", "os.path:x"])
def test_code_is_loaded_only_where_the_user_says_so(game: str) -> None:
    with pytest.raises(UserError, match=r"^It names '.*:.*', whose code is loaded only where you say so"):
        Args().with_defaults({"game": game}, "It")
    assert read_args(["--game", game]).with_defaults({"game": game}, "It").game == game


def test_select_fills_a_rooms_dataclass_by_name() -> None:
    @dataclass(frozen=True)
    class Room:
        t_max: int
        disable_saber_mode: bool

    assert read_args(["--T-max", "7"]).select(Room) == Room(7, False)
    assert read_args(["-p_red", "1"]).select(RedisConfig) == RedisConfig("localhost", 1)


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )


def test_a_users_mistake_ends_the_process_with_one_sentence_and_code_2() -> None:
    ended = _python("-c", "import args; args.parse_args()", "--V-min", "12")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == "error: --V-min 12.0 must be below --V-max 10.0.\n"
