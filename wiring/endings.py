"""How a process ends on an error: one sentence and an exit code instead of a traceback."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from agents.base import AgentError, Diverged
from args import UserError
from envs.config import EnvError, EnvFailure
from evaluation.policies import PolicyError
from evaluation.scenes import SceneError
from event_log.records import EventLogError
from learning.saved.lock import FolderTaken
from learning.saved.snapshot import SnapshotError
from memory.runs.counters import CountersError
from memory.runs.lease import LeaseTaken
from memory.runs.scripts import LostLease
from memory.runs.weights import WeightsError
from memory.server.connection import RedisRefused, RedisUnreachable
from memory.server.patience import Interrupted
from memory.server.replies import UNREACHABLE, Refusing, explained
from reporting.film import FilmError
from reporting.trackers import TrackerError
from supervision.process import INTERRUPTED

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
    TrackerError,
    LeaseTaken,
    FolderTaken,
    RedisRefused,
    Diverged,
)
"""Exit code 2: the user must change something."""
FAULTS = (
    EnvFailure,
    RedisUnreachable,
    redis.exceptions.RedisError,
    LostLease,
    WeightsError,
    CountersError,
    OSError,
)
"""Exit code 1: a supervisor starts the process again."""


@contextmanager
def exit_on_errors() -> Iterator[None]:
    """End the process with one sentence, and no traceback, for what users and servers get wrong."""
    try:
        yield
    except Interrupted as interruption:
        log.info("%s", interruption)
        raise SystemExit(0) from interruption
    except KeyboardInterrupt as interruption:  # of programs that only read; the others save and end
        log.error("Interrupted.")
        raise SystemExit(INTERRUPTED) from interruption
    except USER_ERRORS as error:
        log.error("error: %s", error)
        raise SystemExit(2) from error
    except MemoryError as error:
        log.error("error: There is not enough memory on this machine (%s): use smaller sizes.", error)
        raise SystemExit(2) from error
    except Refusing as error:
        log.error("error: Redis refused for longer than --redis-patience: %s.", str(error).rstrip("."))
        raise SystemExit(1) from error
    except UNREACHABLE as error:
        log.error("error: Redis went away and did not come back within --redis-patience (%s).", error)
        raise SystemExit(1) from error
    except redis.exceptions.ResponseError as error:
        log.error("error: Redis refuses: %s.", explained(error).rstrip("."))
        raise SystemExit(1) from error
    except FAULTS as error:
        reason: object = error
        if isinstance(error, OSError) and error.filename is None:
            reason = error.strerror or error
        log.error("error: %s", reason)
        raise SystemExit(1) from error
