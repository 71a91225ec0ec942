"""The learner's pool of its own past: every so many agent steps one member more, in Redis and on disk."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from learning.learner import Learner
from memory.runs.pool import add_member, read_members
from memory.runs.weights import Weights
from reporting.atomic import atomic_file
from reporting.model_files import numbered_files

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoolConfig:
    """Named as the flags."""

    pool_size: int  # most members
    pool_every: int  # agent steps of the learner's clock


class Pool:
    """`pool_<game>_<updates>.safetensors` in the run's folder, and the same in Redis for the actors.

    Where it is full, the newest half stays whole and every other one of the older half goes: so it reaches
    back to the beginning, ever more thinly.
    """

    def __init__(self, config: PoolConfig, folder: Path, file_name: str, learner: Learner) -> None:
        """What is on disk and not in Redis any more is brought there again. Files of later updates, of an
        earlier run or from before a rollback, are renamed to .earlier.
        """
        self._config, self._learner = config, learner
        self._folder, self._prefix = folder, f"pool_{file_name}_"
        self._added = learner.t_learner // config.pool_every
        found = pool_files(folder, file_name)
        self._members = [updates for updates in found if updates <= learner.updates]
        for updates in found.keys() - set(self._members):
            found[updates].rename(found[updates].with_suffix(".earlier"))
        self._fill_redis()

    def add_due(self) -> None:
        """Add the present weights where it is time: in Redis first, which refuses those of an earlier epoch.

        Raises ReplayLost where the epoch is over, and OSError.
        """
        added = self._learner.t_learner // self._config.pool_every
        if added == self._added:
            return
        updates, payload = self._learner.updates, save_tensors(self._learner.agent.acting_weights())
        members = sorted({*self._members, updates})
        kept = thinned(members, self._config.pool_size)
        gone = [each for each in members if each not in kept]
        with atomic_file(self._path(updates)) as file:
            file.write(payload)
            file.flush()  # a full disk shows here, before Redis has the member
            self._publish(updates, payload, kept, gone)
        self._added, self._members = added, kept
        for each in gone:
            self._path(each).unlink(missing_ok=True)
        count = "1 past self" if len(kept) == 1 else f"{len(kept)} past selves"
        log.info("The pool has %s; the newest is of update %s.", count, f"{updates:,}")

    def _fill_redis(self) -> None:
        """So that it has what is on disk and nothing else."""
        slot = self._learner.slot
        held = slot.patience(read_members, slot.client, slot.keys)
        if held == self._members:
            return
        slot.patience(slot.client.unlink, slot.keys.pool, slot.keys.pool_members)
        for updates in self._members:  # stamped with the present T_learner: files do not hold their own
            self._publish(updates, self._path(updates).read_bytes(), self._members, [])

    def _publish(self, updates: int, payload: bytes, kept: list[int], gone: list[int]) -> None:
        slot = self._learner.slot
        weights = Weights(slot.epoch, updates, self._learner.t_learner, payload)
        slot.patience(add_member, slot.client, slot.keys, weights, kept, gone)

    def _path(self, updates: int) -> Path:
        return self._folder / f"{self._prefix}{updates}.safetensors"


def pool_files(folder: Path, file_name: str) -> dict[int, Path]:
    """Updates -> the file of that member, oldest first; those that cannot be read are named and left out."""
    prefix = f"pool_{file_name}_"
    paths = filter(_is_whole, reversed(numbered_files(folder, prefix, ".safetensors")))
    return {int(path.stem.removeprefix(prefix)): path for path in paths}


def thinned(members: list[int], size: int) -> list[int]:
    """At most `size` of the sorted `members`: while there are more, every other old one goes."""
    while len(members) > size:
        older = members[: len(members) - (size - size // 2)]
        members = [*older[::2], *members[len(older) :]] if len(older) > 1 else members[1:]
    return members


def _is_whole(path: Path) -> bool:
    try:
        load_tensors(path.read_bytes())
    except Exception as error:  # safetensors raises many kinds for damaged bytes
        log.warning("%s is left out of the pool: it cannot be read (%s).", path, error)
        return False
    return True
