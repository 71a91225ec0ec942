"""Snapshots: tensors, arrays and plain Python values only, written whole or not at all."""

from __future__ import annotations

import io
import logging
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reporting.atomic import write_atomically
from reporting.model_files import last_models

log = logging.getLogger(__name__)

FORMAT = 1
_ARRAY = "numpy array"
Snapshot = dict[str, Any]
_DICTS = ("settings", "config", "acting_weights", "agent_state", "sampler_generator")
_CLOCKS = ("updates", "t_learner", "t_actors", "epoch", "began")
_COUNTS = (*_CLOCKS, "best_episodes", "replay_slots", "owed_steps", "steps_learned", "refilled")
_KINDS: dict[str, type] = {**dict.fromkeys(_DICTS, dict), **dict.fromkeys(_COUNTS, int)}
"""Part of a snapshot -> its type, where it has that part; counts are not negative."""
_FINITE = ("acting_weights", "agent_state")
RESUMED = ("acting_weights", "updates", "t_learner", "t_actors", "best_mean", "best_episodes")
"""Parts that every learner resumes from, beside the state of its agent."""
POLL_EVERY_S = 0.5
"""Seconds between two looks at a folder for its first snapshot."""
LARGEST_COUNT = 1 << 53
"""Whole numbers below this are exact in every place that they come to."""
MOST_PARTS = 1_000_000
"""Most values in the lists and dicts of a snapshot, each counted as often as it is met: nested lists that
share their parts can be small on disk and practically endless to walk through. A snapshot of `--serial` has
some thousands.
"""
MOST_TIMES_READ = 8
"""Most bytes of all tensors, each counted as often as it is met, as a multiple of the file's size."""


class SnapshotError(ValueError):
    """A snapshot cannot be read or is not of this run; the message is one sentence."""


def save_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write `snapshot` to `path` through a temporary file."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **_without_arrays(snapshot)}, buffer)
    write_atomically(path, buffer.getvalue())


def load_snapshot(path: Path) -> Snapshot:
    """Read a snapshot without running any code from it; raises SnapshotError."""
    if not path.is_file():
        raise SnapshotError(f"There is no snapshot {path}.")
    try:
        data = path.read_bytes()
        _check_whole(data)
        loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        _check_extent(loaded, MOST_TIMES_READ * len(data))
        _check_tensors(loaded)
        snapshot = _with_arrays(loaded)
    except Exception as error:  # torch.load raises many kinds for damaged files
        raise SnapshotError(f"The snapshot {path} is damaged: {_reason(error)}.") from error
    if not isinstance(snapshot, dict) or snapshot.get("format") != FORMAT:
        raise SnapshotError(f"{path} is no snapshot of this program (format {FORMAT}).")
    for name, kind in _KINDS.items():
        _check_part(path, name, snapshot.get(name, kind()), kind)
    best_mean = snapshot.get("best_mean")
    if not (best_mean is None or type(best_mean) in (int, float)) or best_mean != best_mean:
        raise SnapshotError(f"The snapshot {path} is damaged: its best_mean is not what it should be.")
    return snapshot


def wait_for_snapshot(folder: Path, file_name: str, stopped: Callable[[], bool]) -> Snapshot | None:
    """The newest snapshot of this game in `folder`, once there is one; None when `stopped` first.

    Raises SnapshotError where there are snapshots of other games only.
    """
    announced = False
    while not stopped():
        for path in last_models(folder, file_name):
            with suppress(SnapshotError):  # it may be replaced while it is read
                return load_snapshot(path)
        if others := last_models(folder):
            raise SnapshotError(f"{folder} holds {others[0].name}, and none of {file_name}: is --game right?")
        if not announced:
            log.info("Waiting for a snapshot last_model_%s_*.pth in %s.", file_name, folder)
            announced = True
        time.sleep(POLL_EVERY_S)
    return None


def _leaves(value: Any) -> Iterator[Any]:
    """What nested dicts, lists and tuples hold."""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        yield value
        return
    for item in value:
        yield from _leaves(item)


def _check_extent(loaded: Any, most_bytes: int) -> None:
    """Raises ValueError where lists and dicts that share their parts would take ages to walk through."""
    waiting, parts, tensor_bytes = [loaded], 0, 0
    while waiting:
        value = waiting.pop()
        parts += 1
        if isinstance(value, torch.Tensor):
            tensor_bytes += value.numel() * value.element_size()
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        if parts + len(waiting) > MOST_PARTS or tensor_bytes > most_bytes:
            raise ValueError("its parts are shared too often to be read")


def _check_tensors(loaded: Any) -> None:
    """Raises ValueError for tensors that hold less than they claim, or are not plain numbers in memory."""
    for tensor in _leaves(loaded):
        if isinstance(tensor, torch.Tensor):
            is_plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
            if not is_plain or tensor.is_quantized or tensor.is_nested:
                raise ValueError("a tensor is not a plain one")
            if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
                raise ValueError("a tensor claims more than it holds")


def _check_part(path: Path, name: str, part: object, kind: type) -> None:
    whole = isinstance(part, kind) and not isinstance(part, bool)
    if isinstance(part, int):
        whole = whole and 0 <= part < LARGEST_COUNT
    if name == "acting_weights" and isinstance(part, dict):
        whole = all(isinstance(weight, torch.Tensor) for weight in part.values())
    if whole and name in _FINITE:
        whole = _is_finite(part)
    if not whole:
        raise SnapshotError(f"The snapshot {path} is damaged: its {name} is not what it should be.")


def is_finite(snapshot: Snapshot) -> bool:
    """Whether weights and the optimiser's state are; a snapshot with others is refused when it is read."""
    return all(_is_finite(snapshot[name]) for name in _FINITE)


def _is_finite(part: object) -> bool:
    numbers = (leaf for leaf in _leaves(part) if isinstance(leaf, torch.Tensor | float))
    return all(bool(torch.as_tensor(number).isfinite().all()) for number in numbers)


def check_holds(path: Path, snapshot: Snapshot, names: Iterable[str]) -> None:
    """Raise SnapshotError where a part lacks."""
    if missing := [name for name in names if name not in snapshot]:
        raise SnapshotError(f"The snapshot {path} lacks {', '.join(missing)}.")


@contextmanager
def restoring() -> Iterator[None]:
    """Within, parts of a snapshot are loaded: an error of a wrong part becomes a SnapshotError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        raise SnapshotError(f"The snapshot cannot be gone on from: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].partition(". ")[0].rstrip(".")


def _without_arrays(value: Any) -> Any:
    """A copy of nested dicts, lists and tuples in which a NumPy array is a dict that says so."""
    if isinstance(value, np.ndarray | np.generic):
        return {_ARRAY: torch.from_numpy(np.array(value))}
    if isinstance(value, Mapping):
        return {name: _without_arrays(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_without_arrays, value))
    return value


def _with_arrays(value: Any) -> Any:
    """The inverse of `_without_arrays`."""
    if isinstance(value, Mapping) and value.keys() == {_ARRAY}:
        tensor = value[_ARRAY]
        if not isinstance(tensor, torch.Tensor) or tensor.requires_grad:
            raise ValueError("What should be an array is none")
        return np.asarray(tensor.numpy())
    if isinstance(value, Mapping):
        return {name: _with_arrays(item) for name, item in value.items()}
    return type(value)(map(_with_arrays, value)) if isinstance(value, list | tuple) else value


def _check_whole(data: bytes) -> None:
    """Compare every record with its CRC-32: torch.save writes them, torch.load does not look at them."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(record.compress_type != zipfile.ZIP_STORED for record in archive.infolist()):
            raise zipfile.BadZipFile("Compressed records are not torch.save's")
        damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"The checksum of {damaged} does not match")


def check_origin(path: Path, snapshot: Snapshot, expected: Mapping[str, object], remedy: str = "") -> None:
    """Raise SnapshotError, naming both values and a remedy, where `snapshot` has other settings."""
    for name, value in expected.items():
        found = snapshot.get("settings", {}).get(name)
        if found != value:
            raise SnapshotError(f"The snapshot {path} was made with {name} {found}, not {value}{remedy}.")
