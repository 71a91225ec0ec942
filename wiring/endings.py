"""How a process logs, and how it ends on an error: one sentence and an exit code instead of a traceback."""

from __future__ import annotations

import logging
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import redis

from agents.base import AgentError, Diverged
from args import UserError
from envs.config import EnvError
from evaluation.policies import PolicyError
from evaluation.scenes import SceneError
from event_log.records import EventLogError
from learning.snapshot import SnapshotError
from memory.runs.counters import CountersError
from memory.runs.lease import LeaseTaken
from memory.runs.push import LostLease
from memory.runs.weights import WeightsError
from memory.server.connection import UNREACHABLE, Interrupted, RedisRefused, RedisUnreachable
from reporting.film import FilmError

log = logging.getLogger(__name__)

USER_ERRORS = (
    UserError,
    AgentError,
    EnvError,
    EventLogError,
    FilmError,
    PolicyError,
    SceneError,
    SnapshotError,
    LeaseTaken,
    RedisRefused,
    Diverged,
)
"""Exit code 2: the user must change something."""
FAULTS = (RedisUnreachable, redis.exceptions.RedisError, LostLease, WeightsError, CountersError, OSError)
"""Exit code 1: a supervisor starts the process again."""


ROOMS = (
    "acting",
    "agents",
    "envs",
    "evaluation",
    "event_log",
    "kernels",
    "learning",
    "memory",
    "models",
    "reporting",
    "supervision",
    "wiring",
    "__main__",
)
"""Whose logging SIGUSR1 makes verbose; that of libraries stays as it is."""


def set_up_logging() -> None:
    """Log and warn in plain sentences on standard error; SIGUSR1 makes that verbose, or plain again."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    signal.signal(signal.SIGUSR1, _toggle_verbose)
    logging.captureWarnings(True)
    warnings.formatwarning = lambda message, *_, **__: str(message)


def _toggle_verbose(_number: int, _frame: FrameType | None) -> None:
    verbose = log.getEffectiveLevel() != logging.DEBUG
    for room in ROOMS:
        logging.getLogger(room).setLevel(logging.DEBUG if verbose else logging.NOTSET)
    log.info("Logging is %s now (SIGUSR1).", "verbose" if verbose else "plain")


@contextmanager
def exit_on_errors() -> Iterator[None]:
    """End the process with one sentence, and no traceback, for what users and servers get wrong."""
    try:
        yield
    except Interrupted as interruption:
        log.info("%s", interruption)
        raise SystemExit(0) from interruption
    except USER_ERRORS as error:
        log.error("error: %s", error)
        raise SystemExit(2) from error
    except MemoryError as error:
        log.error("error: There is not enough memory on this machine (%s): use smaller sizes.", error)
        raise SystemExit(2) from error
    except UNREACHABLE as error:
        log.error("error: Redis went away and did not come back within --redis-patience (%s).", error)
        raise SystemExit(1) from error
    except FAULTS as error:
        log.error("error: %s", error)
        raise SystemExit(1) from error
