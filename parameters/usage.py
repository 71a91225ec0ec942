"""What --help shows: examples, the flags that people look for, agents and games; `--help all`: every flag.

Each program has a Page here. Imports nothing heavy.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic.fields import FieldInfo

from parameters.declare import Programs, Settings, flag_of, plain_type

WIDTH = 120
COLUMN = 36
"""Column in which sentences begin."""

Flags = Mapping[str, FieldInfo]


class Page(NamedTuple):
    """The help of one program."""

    about: str
    reads: Programs
    examples: tuple[tuple[str, str], ...] = ()
    """Commands, and what comes of each."""
    wanted: Sequence[str] = ()
    """Parameters that people look for."""


_OF_A_RUN = "game agent spec T_max seed run host_redis port_redis"
START_LEARNING = Page(
    "A whole run in one terminal: Redis, the learner and the actors. Ctrl-C saves and stops all; the same"
    " command goes on. `bash start_learning_atari.sh` takes the same flags and sets everything up first.",
    Programs.TERMINAL,
    (
        ("--game CartPole-v1 --agent reinforce", "balances a pole within a minute"),
        ("--game Pendulum-v1 --agent naf", "continuous actions"),
        ("--game ms_pacman --spec specs/atari/rainbow_iqn_cpu.yaml", "Atari on two CPU cores"),
        ("--game pong --nb-actor 4 --envs-per-actor 4", "Atari as published, for a GPU"),
        ("--game path/to/my_env.py:MyEnv --agent dqn", "an environment of your own"),
    ),
    f"{_OF_A_RUN} path_to_results nb_actor envs_per_actor memory_capacity learn_start lr hidden_size".split(),
)
LEARNER = Page(
    "The learner of a run; it needs a Redis server, and actors (launch_actor.py).",
    Programs.LEARNER,
    (
        ("--game CartPole-v1 --agent dqn", "then launch_actor.py with the same words"),
        ("--game probe:catch --serial --threads 1", "with an actor inside, exactly repeatable"),
    ),
    f"{_OF_A_RUN} path_to_results nb_actor memory_capacity learn_start lr hidden_size serial".split(),
)
ACTOR = Page(
    "An actor: plays, and sends what it sees to the learner of its run, whose settings it takes over.",
    Programs.ACTOR,
    (
        ("--game CartPole-v1 --agent dqn --id-actor 0", "the first actor; others take 1, 2 ..."),
        ("--game pong --id-actor 1 --host-redis 10.0.0.1", "on another machine"),
        ("--game pong --id-actor 1 --eval --no-push", "measures how well the agent plays"),
    ),
    f"id_actor {_OF_A_RUN} envs_per_actor eval no_push render event_log_out".split(),
)
EVALUATION = Page(
    "Evaluation: plays episodes of fixed seeds with a snapshot, and writes their scores. What no flag says"
    " comes from the snapshot.",
    Programs.EVALUATION,
    (
        ("--model results/last_model_pong_400000.pth", "100 episodes"),
        ("--model results/last_model_pong_400000.pth --record pong.mp4", "with a film"),
        ("--kept cartpole_dqn", "a snapshot that ships"),
        ("--game pong --agent random", "for comparison"),
    ),
    (
        "model kept game agent evaluation_episodes evaluation_envs eval_noise evaluation_epsilon record"
        " render transfer seed path_to_results"
    ).split(),
)
LIVE_PAGE = Page(
    "The live page: every run on a Redis server or in the results folder, in a browser. It only reads them.",
    Programs.PAGE,
    (
        ("", "at http://127.0.0.1:8050"),
        ("--host-redis 10.0.0.1 --user-redis viewer", "runs on another machine"),
        ("--page-host 0.0.0.0", "for other machines, which need the token that is printed"),
    ),
    "host_redis port_redis user_redis path_to_results page_host page_port".split(),
)
CLUSTER = Page(
    "A whole run on a cluster of Ray's: the learner here, the actors wherever there is room. Ctrl-C saves and"
    " stops all. It needs the extra `cluster`; docs/scale.md explains it.",
    Programs.LEARNER | Programs.ACTOR | Programs.CLUSTER,
    (
        ("--game CartPole-v1 --spec specs/classic/cartpole_dqn.yaml", "on this machine alone"),
        ("--ray-address auto --host-redis 10.0.0.1 --game pong", "on Ray's cluster"),
        ("--ray-address auto --host-redis 10.0.0.1 --game pong --add-actors 8", "8 actors join it"),
        ("--ray-address auto --game pong --status", "what is where; or --stop"),
    ),
    (
        f"ray_address {_OF_A_RUN} path_to_results nb_actor placement learner_gpus actor_cpus detach"
        " status stop add_actors remove_actors"
    ).split(),
)
OTHER = Page("Rainbow-IQN Ape-X.", Programs.ALL)

LISTS = """\
Agents, for --agent:
  iqn, rainbow, dqn, double_dqn     discrete actions, learn from a replay
  naf                               continuous actions, learns from a replay
  reinforce, a2c, ppo               discrete or continuous actions, learn from rollouts
  ppo_rnd                           discrete actions, learns from rollouts, curious
  path/to/my_agent.py:MyAgent       your own (docs/tutorials/own_agent.md)

Games, for --game:
  pong, space_invaders ...          Atari: any ALE game for one player
  CartPole-v1, HalfCheetah-v5 ...   any Gymnasium id
  minatar:breakout ...              MinAtar's asterix, breakout, freeway, seaquest, space_invaders
  maze:1 to maze:3, maze:4x4        mazes of pixels, continuous actions
  vizdoom:my_way_home, malmo:1 ...  Doom, Minecraft
  unity:3dball, unity:gridworld     builds of Unity (docs/unity.md)
  pettingzoo:connect_four_v3 ...    games of several players (docs/multi.md)
  probe:catch, probe:lock:24        tiny ones, for tests
  path/to/my_env.py:MyEnv           your own (docs/own_environment.md)"""
"""What stands before a colon is own_code/code.py's KINDS; agents/names.py has the agents."""


def asked_for(argv: Sequence[str]) -> str | None:
    """The word behind --help, "" where there is none; None where --help is not there."""
    for place, word in enumerate(argv):
        name, _, value = word.partition("=")
        if name in ("--help", "-h"):
            return value or next(iter(argv[place + 1 : place + 2]), "")
    return None


def help_text(page: Page, groups: Iterable[type[Settings]], flags: Flags, everything: bool) -> str:
    """The page of the present program.

    Args:
        groups: those of the parameters.
        flags: all parameters, also those of a user's own agent.
        everything: every flag that the program reads, in place of the ones that people look for.
    """
    program = os.path.relpath(sys.argv[0])
    head = [f"usage: python {program} [--FLAG VALUE ...]", "", *textwrap.wrap(page.about, WIDTH), ""]
    sections = read_by(page.reads, groups)
    named = {name for names in sections.values() for name in names}
    grouped = {name for group in groups for name in group.__annotations__}
    sections["Your own agent"] = [name for name in flags if name not in grouped]
    if everything or not page.wanted:
        rows = [_section(title, names, flags) for title, names in sections.items() if names]
        return "\n".join([*head, "\n\n".join(rows)])
    commands = [f"  python {program} {words}" for words, _ in page.examples]
    width = max(map(len, commands)) + 2
    examples = [f"{each:<{width}}{come}" for each, (_, come) in zip(commands, page.examples, strict=True)]
    head += ["Examples:", *examples, ""]
    wanted = _section("Flags that people look for", page.wanted, flags)
    own_names = sections["Your own agent"]
    own = ["", _section("Your own agent", own_names, flags)] if own_names else []
    rest = len(named - set(page.wanted))
    more = f"{rest} flags more: `python {program} --help all`; docs/flags.md has those of every program."
    lists = ["", LISTS] if "agent" in page.wanted or "game" in page.wanted else []
    return "\n".join([*head, wanted, *own, *lists, "", more])


def read_by(reads: Programs, groups: Iterable[type[Settings]]) -> dict[str, list[str]]:
    """Heading -> parameters that a program reads."""
    found: dict[str, list[str]] = {}
    for group in groups:
        names = [name for name in group.__annotations__ if programs_of(group, name) & reads]
        found[(group.__doc__ or "").rstrip(".")] = names
    return found


def programs_of(group: type[Settings], name: str) -> Programs:
    """Which programs read a parameter."""
    extra = group.model_fields[name].json_schema_extra
    own = extra.get("programs") if isinstance(extra, dict) else None
    return own if isinstance(own, Programs) else group.programs


def _section(title: str, names: Iterable[str], flags: Flags) -> str:
    return "\n".join([f"{title}:", *(_flag(name, flags[name]) for name in names)])


def _flag(name: str, field: FieldInfo) -> str:
    short = "-p_red, " if name == "port_redis" else ""
    kind = plain_type(field.annotation)
    value = "" if kind is bool else f" {kind.__name__.upper()}"
    default = "" if field.default is False or field.default in (None, "") else f" (default: {field.default})"
    flag = f"  {short}{flag_of(name)}{value}"
    lines = textwrap.wrap(f"{field.description}{default}", WIDTH - COLUMN)
    first = f"{flag:<{COLUMN - 2}}  " if len(flag) <= COLUMN - 2 else f"{flag}\n{' ' * COLUMN}"
    return first + f"\n{' ' * COLUMN}".join(lines)
