"""The table of all parameters: composed of what each room's settings.py declares, and checked across rooms.

No room knows this module: launchers hand each room the frozen dataclass it declares, filled by `Args.select`.
Reads at most the one file named by --spec (parameters/spec_file.py); no other input or output, no seeding, no torch.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import sys
import typing
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import ValidationError, create_model
from pydantic.fields import FieldInfo

from acting.settings import ActorSettings
from agents.settings import LearnerSettings, NetworkSettings, PolicySettings
from cluster.settings import ClusterSettings
from envs.settings import EnvironmentSettings, MalmoSettings
from evaluation.settings import ReportingSettings
from live.settings import PageSettings
from memory.settings import RedisSettings, ReplaySettings, RolloutSettings, parsed_nodes
from own_code.code import KINDS, names_code, short_name
from own_code.flags import own_flags
from parameters.declare import UserError as UserError
from parameters.declare import flag_of, plain_type, problem
from parameters.spec_file import agent_of_spec, nearest, read_spec
from parameters.usage import OTHER, Page, asked_for, help_text
from wiring.settings import DeviceSettings, RunSettings

Plain = bool | int | float | str | None
Dataclass = TypeVar("Dataclass")

CODE = "code:"
"""Prefix of settings on the user's own code (wiring/code.py): they are compared, and set nothing."""
ORIGIN = "run"
"""The setting of a snapshot that says where it comes from."""
UNSYNCHRONISED_ABOVE = 4
"""Actors above which the original's README recommends --synchronize-actors-with-learner False."""


class Args(
    RunSettings,
    EnvironmentSettings,
    MalmoSettings,
    RedisSettings,
    ActorSettings,
    ReplaySettings,
    RolloutSettings,
    LearnerSettings,
    PolicySettings,
    NetworkSettings,
    DeviceSettings,
    ReportingSettings,
    PageSettings,
    ClusterSettings,
):
    """All parameters of one process, checked; --help shows them in this order."""

    def select(self, kind: type[Dataclass]) -> Dataclass:
        """A dataclass of some room, filled with the parameters of the same names."""
        own = {name.lower(): getattr(self, name) for name in type(self).model_fields}
        return kind(**{field.name: own[field.name] for field in dataclasses.fields(cast(Any, kind))})

    @property
    def run_name(self) -> str:
        """Name of the run on the server."""
        return self.run or ",".join(map(short_name, self.games))

    @property
    def games(self) -> tuple[str, ...]:
        """Those of --game."""
        return tuple(self.game.split(","))

    def playing(self, game: str) -> Args:
        """These parameters with one of the games alone."""
        return self if game == self.game else self.model_copy(update={"game": game})

    @property
    def file_name(self) -> str:
        """The game as part of a file's name."""
        return re.sub(r"[^A-Za-z0-9_.-]", "_", ",".join(map(short_name, self.games)).replace(".py:", ":"))

    @property
    def own_code(self) -> list[str]:
        """The flags that whoever plays this run's snapshot has to give again: no file vouches for code of a
        user's own, nor for what an environment is made with.
        """
        named = {"--game": self.game, "--agent": self.agent}
        own = {flag: names for flag, names in named.items() if any(map(names_code, names.split(",")))}
        own |= {"--env-args": self.env_args} if self.env_args else {}
        return [word for flag_and_value in own.items() for word in flag_and_value]

    def shared(self) -> dict[str, Plain]:
        """What the learner publishes and every actor of the run must have alike."""
        return {
            name: getattr(self, name) for name, field in type(self).model_fields.items() if _is_shared(field)
        }

    def adopt(self, settings: Mapping[str, object]) -> Args:
        """These parameters with the run's settings in place of those not given by the user.

        Raises UserError naming both values when one was given and contradicts the run.
        """
        if usual := self._left_to_the_run():
            asked = self.model_copy()
            asked.model_fields_set.difference_update(usual)
            return asked.adopt(settings)
        for name in sorted(self.model_fields_set & settings.keys()):
            if getattr(self, name) != settings[name] and _is_shared(type(self).model_fields[name]):
                mine, theirs = getattr(self, name), settings[name]
                raise UserError(
                    f"{flag_of(name)} is {mine} here but {theirs} at the learner of run {self.run_name!r}."
                )
        return self.with_defaults(settings, f"What Redis holds of run {self.run_name!r}")

    def _left_to_the_run(self) -> set[str]:
        """Parameters that were given a value which only says that the game or the agent decides."""
        decided: dict[str, Plain] = {"history_length": 0, "priority_exponent": None}
        if len(self.games) > 1:
            decided |= {"trunk_size": 0, "shards": 1}
        return {
            name for name in decided.keys() & self.model_fields_set if getattr(self, name) == decided[name]
        }

    def with_defaults(self, settings: Mapping[str, object], where: str) -> Args:
        """These parameters, with `settings` in place of the defaults that the user left as they are.

        Others than the user may have written `settings`, so that only shared parameters are taken from there, and
        no value that names code. `where`: what a sentence calls their place. Raises UserError.
        """
        given = {name: getattr(self, name) for name in self.model_fields_set}
        found = {
            name: value for name, value in settings.items() if name != ORIGIN and not name.startswith(CODE)
        }
        for name in found:
            field = type(self).model_fields.get(name)
            if field is None or not _is_shared(field):
                raise UserError(f"{where} sets {name!r}, which no learner shares: nothing of it is used.")
        for name in {"game", "agent"} - given.keys():
            _check_imports_nothing(name, str(found.get(name, "")), where)
        try:
            return type(self)(**cast(dict[str, Any], {**found, **given}))
        except ValidationError as error:
            raise UserError(f"{where} is damaged: {_sentence(error)}") from error


def parse_args(argv: Sequence[str] | None = None, page: Page = OTHER) -> Args:
    """Parameters from the command line and the --spec file; a user's mistake ends the process with exit code 2.

    --help prints the program's `page`, `--help all` every flag that it reads; both end the process.
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        _help(words, page)
        return read_args(words)
    except UserError as error:
        fail(error)


def _help(argv: Sequence[str], page: Page) -> None:
    """Print it, where --help is among the words."""
    word = asked_for(argv)
    if word is None:
        return
    kind = _type_named([each for each in argv if each != "all"])
    text = help_text(page, Args.__bases__, kind.model_fields, word == "all")
    try:
        print(text, flush=True)
    except BrokenPipeError:  # of `| head`; Python would complain at the exit too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0)


def fail(error: Exception) -> typing.NoReturn:
    """End the process as a user's mistake does: one sentence, exit code 2."""
    complain(error)
    raise SystemExit(2)


def complain(error: Exception) -> None:
    """Say what is wrong, and go on."""
    print(f"error: {error}", file=sys.stderr)


def read_args(argv: Sequence[str]) -> Args:
    """As `parse_args`, raising UserError."""
    kind = _type_named(argv)
    given = vars(_parser(kind).parse_args(argv))
    if not given.get("spec"):
        return checked_args(given)
    flags, written = read_spec(Path(given["spec"]), kind.model_fields)
    return checked_args({**flags, **given}, {name: written[name] for name in flags.keys() - given.keys()})


def args_type(agent: object) -> type[Args]:
    """Where the user's own agent is named, `Args` with the fields of its config besides. Raises UserError."""
    reserved = {*dir(Args), "help"}
    fields = own_flags(agent, Args.model_fields, reserved) if isinstance(agent, str) else {}
    return create_model("Args", __base__=Args, **cast(dict[str, Any], fields)) if fields else Args


def _type_named(argv: Sequence[str]) -> type[Args]:
    """`args_type` of --agent, or of the agent of --spec, which say what other flags there are."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--agent")
    parser.add_argument("--spec")
    first, _ = parser.parse_known_args(argv)
    return args_type(first.agent or agent_of_spec(first.spec))


def checked_args(values: Mapping[str, Any], written: Mapping[str, str] | None = None) -> Args:
    """Parameters by name, checked one by one and against each other; raises UserError.

    Args:
        written: what a sentence calls those that stand in a file; the others are called by their flags.
    """
    try:
        args = args_type(values.get("agent"))(**values)
    except ValidationError as error:
        raise UserError(_sentence(error, written)) from error
    return _resolved(args)


def checked_value(name: str, value: Plain, written: str) -> Plain:
    """The value of one parameter as its own type; raises UserError. What goes with which is not looked at."""
    try:
        plain: Plain = getattr(Args(**cast(dict[str, Any], {name: value})), name)
    except ValidationError as error:
        raise UserError(_sentence(error, {name: written})) from error
    return plain


def _resolved(args: Args) -> Args:
    """Fill what depends on other parameters, and check across them."""
    if len(args.games) > 1 and "nb_actor" not in args.model_fields_set:
        args = args.model_copy(update={"nb_actor": len(args.games)})
    changes: dict[str, Plain] = {}
    if args.rainbow_only:
        if "agent" in args.model_fields_set and args.agent != "rainbow":
            raise UserError(f"--rainbow-only contradicts --agent {args.agent}.")
        changes["agent"] = "rainbow"
    if args.sequential:
        changes["max_policy_lag"] = 0
    if args.redis_nodes:
        changes |= _first_node(args)
    if args.length_actor_buffer < args.chunk_length:
        changes["chunk_length"] = args.length_actor_buffer
    _check(args)
    return args.model_copy(update=changes)


def _first_node(args: Args) -> dict[str, Plain]:
    """The place of the one server is that of the first of --redis-nodes."""
    host, port = _servers("redis-nodes", args.redis_nodes)[0]
    return {"host_redis": host, "port_redis": port or args.port_redis}


def _servers(flag: str, text: str) -> list[tuple[str, int]]:
    try:
        return parsed_nodes(text)
    except ValueError as error:
        raise UserError(f"--{flag} {text}: {error}.") from error


def _check(args: Args) -> None:
    _servers("redis-replicas", args.redis_replicas)
    gpus = args.gpu_numbers.split(",") if args.gpu_numbers else []
    rules = (
        (args.V_min >= args.V_max, f"--V-min {args.V_min} must be below --V-max {args.V_max}."),
        (args.sequential and "max_policy_lag" in args.model_fields_set and args.max_policy_lag > 0, f"--sequential means a lag of 0, not --max-policy-lag {args.max_policy_lag}."),
        (bool(args.redis_nodes and {"host_redis", "port_redis"} & args.model_fields_set), "--redis-nodes names all servers: leave --host-redis and --port-redis out."),
        (args.redis_cluster and "/" in f"{args.host_redis}{args.redis_nodes}", "--redis-cluster: its nodes have a host and a port, no path of a socket."),
        (bool(args.redis_cluster and args.redis_replicas), "--redis-replicas is for servers that are no Redis Cluster."),
        (len(gpus) not in (0, 1 + args.nb_actor), f"--gpu-numbers must name {1 + args.nb_actor} GPUs: the learner's, then one per actor (--nb-actor {args.nb_actor})."),
    )  # fmt: skip
    for broken, sentence in rules:
        if broken:
            raise UserError(sentence)
    synchronised = args.synchronize_actors_with_learner
    if synchronised and args.nb_actor > UNSYNCHRONISED_ABOVE:
        warnings.warn(
            "More than 4 actors wait for the learner most of the time; consider --synchronize-actors-with-learner False.",
            stacklevel=2,
        )
    if not synchronised and args.nb_actor == 1:
        warnings.warn(
            "One actor without synchronisation: updates per step depend on the speed of the machine, unlike in published single-actor results.",
            stacklevel=2,
        )


def _check_imports_nothing(flag: str, names: str, where: str) -> None:
    """Raise UserError for a name of code to be imported: only the user may ask for that."""
    for name in names.split(","):
        if ":" in name and name.partition(":")[0] not in KINDS:
            raise UserError(
                f"{where} names {name!r}, whose code is loaded only where you say so: give --{flag} {name}."
            )


def _is_shared(field: FieldInfo) -> bool:
    return bool(cast(dict[str, Any], field.json_schema_extra)["shared"])


def _no_flag(name: str) -> str:
    """The sentence on a name, without its dashes before, that no flag has."""
    return f"There is no flag --{name}{nearest(name, Args.model_fields, '--')}"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> typing.NoReturn:
        unknown = re.match(r"unrecognized arguments: --([\w-]+)", message)
        if unknown:
            raise UserError(_no_flag(unknown[1]))
        raise UserError(f"{message}. --help all lists every flag.")


def _parser(kind: type[Args]) -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    for name, field in kind.model_fields.items():
        short = ["-p_red"] if name == "port_redis" else []
        optional: dict[str, Any] = (
            {"nargs": "?", "const": True} if plain_type(field.annotation) is bool else {}
        )
        parser.add_argument(*short, flag_of(name), dest=name, **optional)
    return parser


def _sentence(error: ValidationError, written: Mapping[str, str] | None = None) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":  # from Python: argparse and spec files look for themselves
        return _no_flag(name.replace("_", "-"))
    return f"{(written or {}).get(name, flag_of(name))} {problem(first)}"
