"""The table of all parameters: composed of what each room's settings.py declares, and checked across rooms.

No room knows this module: launchers hand each room the frozen dataclass it declares, filled by `Args.select`.
Reads at most the one file named by --spec (spec_file.py); no other input or output, no seeding, no torch.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
import re
import sys
import typing
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from acting.settings import ActorSettings
from agents.settings import LearnerSettings, NetworkSettings, PolicySettings
from envs.settings import EnvironmentSettings, MalmoSettings
from evaluation.settings import ReportingSettings
from memory.settings import RedisSettings, ReplaySettings, RolloutSettings
from spec_file import SpecFileError, read_document
from wiring.settings import DeviceSettings, RunSettings

Plain = bool | int | float | str | None
Dataclass = TypeVar("Dataclass")

BLOCKS = ("meta", "search")
"""Keys of a spec that are no flags: how run_lab.py repeats the run, and what it varies in a search."""
ELSEWHERE = {
    "learning_rate": "lr",
    "gamma": "discount",
    "buffer_size": "memory_capacity",
    "replay_size": "memory_capacity",
    "env": "game",
    "n_steps": "multi_step",
}
"""What other libraries call some parameters -> their names here."""
UNSYNCHRONISED_ABOVE = 4
"""Actors above which the original's README recommends --synchronize-actors-with-learner False."""


class UserError(ValueError):
    """A mistake of the user's: one sentence, exit code 2."""


GROUPS: tuple[type, ...] = (
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
)
"""In the order of --help; the first line of a docstring heads its group."""


class _Checked(BaseModel, frozen=True):
    """Checks the fields of the dataclasses that a subclass inherits."""

    model_config = ConfigDict(
        extra="forbid", validate_default=True, allow_inf_nan=False, coerce_numbers_to_str=True
    )

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        # pydantic takes a plain default from a dataclass, without its sentence and bounds.
        for group in filter(dataclasses.is_dataclass, cls.__mro__):
            for field in dataclasses.fields(group):
                about = field.metadata
                described = Field(
                    field.default,
                    description=about["sentence"],
                    json_schema_extra={"shared": about["shared"]},
                    **about["bounds"],
                )
                setattr(cls, field.name, described)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        number = _kind(cls.model_fields[info.field_name or ""].annotation) in (int, float)
        return no_truth(value) if number else value


class Args(
    _Checked,
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
    frozen=True,
):
    """All parameters of one process, checked."""

    def select(self, kind: type[Dataclass], **others: object) -> Dataclass:
        """A dataclass of some room, filled with the parameters of the same names and with `others`."""
        names = {field.name for field in dataclasses.fields(cast(Any, kind))} - others.keys()
        own = {name.lower(): getattr(self, name) for name in type(self).model_fields}
        return kind(**{name: own[name] for name in names}, **others)

    @property
    def run_name(self) -> str:
        """Name of the run on the server."""
        return self.run or self.game

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
        return re.sub(r"[^A-Za-z0-9_.-]", "_", self.game)

    def shared(self) -> dict[str, Plain]:
        """What the learner publishes and every actor of the run must have alike."""
        return {
            name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if _extra(field)["shared"]
        }

    def adopt(self, settings: Mapping[str, object]) -> Args:
        """These parameters with the run's settings in place of those not given by the user.

        Raises UserError naming both values when one was given and contradicts the run.
        """
        for name in sorted(self.model_fields_set & settings.keys()):
            if getattr(self, name) != settings[name] and _extra(type(self).model_fields[name])["shared"]:
                mine, theirs = getattr(self, name), settings[name]
                raise UserError(
                    f"{_flag_of(name)} is {mine} here but {theirs} at the learner of run {self.run_name!r}."
                )
        return self.with_defaults(settings)

    def with_defaults(self, settings: Mapping[str, object]) -> Args:
        """These parameters, with `settings` in place of the defaults that the user left as they are."""
        known = {name: value for name, value in settings.items() if name in type(self).model_fields}
        given = {name: getattr(self, name) for name in self.model_fields_set}
        try:
            return Args(**cast(dict[str, Any], {**known, **given}))
        except ValidationError as error:
            raise UserError(_sentence(error)) from error


def parse_args(argv: Sequence[str] | None = None, description: str = "Rainbow-IQN Ape-X.") -> Args:
    """Parameters from the command line and the --spec file; a user's mistake ends the process with exit code 2."""
    try:
        return read_args(sys.argv[1:] if argv is None else argv, description)
    except UserError as error:
        fail(error)


def fail(error: Exception) -> typing.NoReturn:
    """End the process as a user's mistake does: one sentence, exit code 2."""
    complain(error)
    raise SystemExit(2)


def complain(error: Exception) -> None:
    """Say what is wrong, and go on."""
    print(f"error: {error}", file=sys.stderr)


def read_args(argv: Sequence[str], description: str = "") -> Args:
    """As `parse_args`, raising UserError."""
    given = vars(_parser(description).parse_args(argv))
    if not given.get("spec"):
        return checked_args(given)
    flags, written = read_spec(Path(given["spec"]))
    return checked_args({**flags, **given}, {name: written[name] for name in flags.keys() - given.keys()})


def checked_args(values: Mapping[str, Any], written: Mapping[str, str] | None = None) -> Args:
    """Parameters by name, checked one by one and against each other; raises UserError.

    Args:
      written: what a sentence calls those that stand in a file; the others are called by their flags.
    """
    try:
        args = Args(**values)
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


class SpecFlags(typing.NamedTuple):
    """What a file says about parameters."""

    flags: dict[str, Plain]  # by the names of parameters
    written: dict[str, str]  # what a sentence calls each


def read_spec(path: Path) -> SpecFlags:
    """Parameters in a YAML file: one mapping of flag names (dashes or underscores) to values.

    Beside them `BLOCKS` may stand, which are for run_lab.py; here they are left out.
    """
    document = read_mapping(path)
    if "experiments" in document:
        raise UserError(
            f"The spec {path} holds several experiments: run one with `python run_lab.py run {path} NAME train`."
        )
    if "spec" in document:
        raise UserError(
            f"The spec {path} names another file of flags (spec), which only experiments of run_lab.py may."
        )
    own = {key: document[key] for key in document if key not in BLOCKS}
    flags, written = spec_flags(own, f"The spec {path}")
    return SpecFlags(flags, {name: f"{key} in {path}" for name, key in written.items()})


def read_mapping(path: Path) -> dict[str, Any]:
    """The one mapping that a YAML file holds, less keys that begin with a dot: homes of anchors. Raises UserError."""
    try:
        document = read_document(path)
    except SpecFileError as error:
        raise UserError(str(error)) from error
    if not isinstance(document, dict):
        raise UserError(f"The spec {path} must hold `name: value` lines.")
    return {name: value for name, value in document.items() if not name.startswith(".")}


def spec_flags(document: Mapping[str, Any], where: str) -> SpecFlags:
    """The values of a mapping by the names of parameters; UserError, beginning with `where`, for an unknown one."""
    written = {key.replace("-", "_"): key for key in document}
    unknown = [key for name, key in written.items() if name not in Args.model_fields]
    if unknown:
        raise UserError(f"{where} names an unknown parameter {unknown[0]}{_nearest(unknown[0])}")
    return SpecFlags({name: document[key] for name, key in written.items()}, written)


def _nearest(unknown: str, dashes: str = "") -> str:
    """The end of a sentence about a name that does not exist: the nearest that does, if any is near."""
    name = unknown.replace("-", "_")
    near = [ELSEWHERE[name]] if name in ELSEWHERE else difflib.get_close_matches(name, Args.model_fields, 1)
    return f"; did you mean {dashes}{near[0].replace('_', '-')}?" if near else "."


def _resolved(args: Args) -> Args:
    """Fill what depends on other parameters, and check across them."""
    changes: dict[str, Plain] = {}
    if args.rainbow_only:
        if "agent" in args.model_fields_set and args.agent != "rainbow":
            raise UserError(f"--rainbow-only contradicts --agent {args.agent}.")
        changes["agent"] = "rainbow"
    if args.sequential:
        changes["max_policy_lag"] = 0
    if args.length_actor_buffer < args.chunk_length:
        changes["chunk_length"] = args.length_actor_buffer
    _check(args)
    return args.model_copy(update=changes)


def _check(args: Args) -> None:
    rules = (
        (args.V_min >= args.V_max, f"--V-min {args.V_min} must be below --V-max {args.V_max}."),
        (args.sequential and "max_policy_lag" in args.model_fields_set and args.max_policy_lag > 0, f"--sequential means a lag of 0, not --max-policy-lag {args.max_policy_lag}."),
        (_wrong_gpus(args), f"--gpu-numbers must name {1 + args.nb_actor} GPUs: the learner's, then one per actor (--nb-actor {args.nb_actor})."),
    )  # fmt: skip
    for broken, sentence in rules:
        if broken:
            raise UserError(sentence)
    synchronised = args.synchronize_actors_with_learner
    if synchronised and args.nb_actor > UNSYNCHRONISED_ABOVE:
        warnings.warn(
            "More than 4 actors wait for the learner most of the time; consider --synchronize-actors-with-learner False.",
            stacklevel=2,
        )  # noqa: E501
    if not synchronised and args.nb_actor == 1:
        warnings.warn(
            "One actor without synchronisation: updates per step depend on the speed of the machine, unlike in published single-actor results.",
            stacklevel=2,
        )  # noqa: E501


def _wrong_gpus(args: Args) -> bool:
    return args.gpu_numbers is not None and len(args.gpu_numbers.split(",")) != 1 + args.nb_actor


def _extra(field: FieldInfo) -> dict[str, Any]:
    return cast(dict[str, Any], field.json_schema_extra)


def _flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=36, width=120)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> typing.NoReturn:
        unknown = re.match(r"unrecognized arguments: --([\w-]+)", message)
        if unknown:
            raise UserError(f"There is no flag --{unknown[1]}{_nearest(unknown[1], '--')}")
        raise UserError(f"{message}. --help lists every flag.")


def _parser(description: str) -> argparse.ArgumentParser:
    parser = _Parser(
        description=description,
        formatter_class=_Formatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    for group in GROUPS:
        section = parser.add_argument_group((group.__doc__ or "").rstrip("."))
        for name in group.__annotations__:
            _add_flag(section, name, Args.model_fields[name])
    return parser


def _add_flag(section: argparse._ArgumentGroup, name: str, field: FieldInfo) -> None:
    short = ["-p_red"] if name == "port_redis" else []
    kind = _kind(field.annotation)
    default = "" if field.default in (None, "") else f" (default: {field.default})"
    sentence = f"{field.description}{default}".replace("%", "%%")
    optional: dict[str, Any] = {"nargs": "?", "const": True} if kind is bool else {}
    section.add_argument(
        *short, _flag_of(name), dest=name, type=_boolean if kind is bool else str, help=sentence,
        metavar=kind.__name__.upper(), **optional,
    )  # fmt: skip


def _kind(annotation: object) -> type:
    options = [option for option in typing.get_args(annotation) if option is not type(None)]
    return cast(type, options[0] if options else annotation)


def _boolean(word: str) -> bool:
    words = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    if word.lower() not in words:
        raise argparse.ArgumentTypeError(f"{word!r} is not True, False, 1 or 0")
    return words[word.lower()]


def no_truth(value: Any) -> Any:
    """Refuse true and false where a number belongs: Python would take them for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("input should be a number")
    return value


def _sentence(error: ValidationError, written: Mapping[str, str] | None = None) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0])
    return f"{(written or {}).get(name, _flag_of(name))} {problem(first)}"


def problem(details: ErrorDetails) -> str:
    """What a value is, what it should be, and how to write it where that is plain: the end of a sentence."""
    value, message = details["input"], details["msg"].removeprefix("Value error, ")
    limits = details.get("ctx", {})
    match details["type"]:
        case "int_type" | "int_parsing" if (number := _integer(value)) is not None:
            message = f"input should be a valid integer: write {number}"
        case "string_type" if isinstance(value, list):
            message = f"input should be text: write {','.join(map(str, value))}"
        case "tuple_type":
            message = "input should be a list" + (
                f", as [{value}]" if isinstance(value, str | int | float) else ""
            )
        case "missing":
            message = "it should hold one more"
        case "too_short":
            message = f"it should hold at least {limits['min_length']} of them"
        case "too_long":
            message = f"it should hold at most {limits['max_length']} of them"
    return f"got {value!r}: {message[0].lower()}{message[1:]}."


def _integer(value: object) -> int | None:
    """The one that `value` means, as '1e5' does, in which YAML sees no number; None where it means none."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
