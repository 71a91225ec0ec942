"""Runs of several seats that one actor plays: the parameters of each, and what they play together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from args import Args, UserError
from envs.config import EnvConfig
from envs.multi.barrier import SeatView, Tables
from envs.multi.shared import SharedTables
from envs.registry import share_env
from envs.seeding import environment_seeds
from wiring.setting import SEAT, Setting, derived_seed


def args_of_seats(args: Args) -> list[Args]:
    """The parameters of each of --seat-runs; a list in --env-args has an entry for each. Raises UserError.

    Each has a seed of its own: seats that share one would take the same random actions.
    """
    if args.id_actor < 0:
        raise UserError("--id-actor must be 0 or more with --seat-runs.")
    runs = [run.strip() for run in args.seat_runs.split(",")]
    if len(set(runs)) < len(runs) or not all(runs):
        raise UserError(f"--seat-runs must name a run for each seat, none twice, not {args.seat_runs}.")
    if args.event_log_out or args.render or args.no_push:
        raise UserError("--seat-runs excludes --event-log-out, --render and --no-push.")
    try:
        given = json.loads(args.env_args or "{}")
    except ValueError as error:
        raise UserError(f"--env-args {args.env_args} is no JSON: {error}.") from error
    if isinstance(given, list) and len(given) != len(runs):
        raise UserError(f"--env-args lists {len(given)} for the {len(runs)} runs of --seat-runs.")
    env_args = [args.env_args] * len(runs)
    if isinstance(given, list):
        env_args = [json.dumps(each) if each else "" for each in given]
    return [
        args.model_copy(update={"run": run, "env_args": own, "seed": _seed_of_seat(args, seat)})
        for seat, (run, own) in enumerate(zip(runs, env_args, strict=True))
    ]


def _seed_of_seat(args: Args, seat: int) -> int:
    return derived_seed(args.seed, SEAT, seat) >> 32  # --seed has 31 bits


def build_tables(settings: Sequence[Setting], steps: int) -> Tables:
    """What an actor's seats play together for a run each, after so many steps of the first one."""
    args = settings[0].args
    configs = [setting.args.select(EnvConfig) for setting in settings]
    seeds = environment_seeds(args.seed, args.id_actor, steps, args.envs_per_actor)
    tables: Tables | None = share_env(configs, seeds)
    return tables or SharedTables(configs[0], len(configs), seeds)


def at_tables(setting: Setting, env: SeatView) -> Setting:
    """The setting with as many environments as its seat has. Raises UserError where its run asks for another
    environment than the first one's.
    """
    args = setting.args
    if args.opponents != "self":
        raise UserError("--opponents is for a run that plays all seats, not for one of --seat-runs.")
    wanted, made = asdict(args.select(EnvConfig)), asdict(env.config)
    for name, first in made.items():
        if wanted[name] != first:
            raise UserError(
                f"The runs of the seats differ: {name} is {wanted[name]} of {args.run_name!r}, and {first}"
                " of the first one."
            )
    return setting.with_args(envs_per_actor=env.num_envs)
