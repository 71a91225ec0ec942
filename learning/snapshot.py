"""Snapshots: tensors, arrays and plain Python values only, written whole or not at all."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from reporting.atomic import write_atomically

FORMAT = 1
_ARRAY = "numpy array"
Snapshot = dict[str, Any]
_KINDS: dict[str, type] = {
    **dict.fromkeys(("settings", "config", "acting_weights", "agent_state", "sampler_generator"), dict),
    **dict.fromkeys(
        ("updates", "t_learner", "t_actors", "epoch", "began", "replay_slots", "owed_steps"), int
    ),
    **dict.fromkeys(("steps_learned", "best_episodes"), int),
}
"""What the parts of a snapshot are, those that it has; counts are not negative."""
LARGEST_COUNT = 1 << 53
"""Whole numbers below it are exact in every place that they come to."""
_WEIGHTS = ("acting_weights", "agent_state")
"""Parts whose numbers must be finite."""


class SnapshotError(ValueError):
    """A snapshot cannot be read or is not of this run; the message is one sentence."""


def last_model_path(folder: Path, file_name: str, t_actors: int) -> Path:
    """`last_model_<game>_<steps>.pth`; steps are T_actors."""
    return folder / f"last_model_{file_name}_{t_actors}.pth"


def best_model_path(folder: Path, file_name: str) -> Path:
    """`best_model_<game>.pth`."""
    return folder / f"best_model_{file_name}.pth"


def save_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write `snapshot` to `path` through a temporary file."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **_without_arrays(snapshot)}, buffer)
    write_atomically(path, buffer.getvalue())


def save_last_model(folder: Path, file_name: str, t_actors: int, snapshot: Snapshot) -> Path:
    """Write the newest snapshot, then remove the older ones."""
    path = last_model_path(folder, file_name, t_actors)
    older = [old for old in last_models(folder, file_name) if old != path]
    save_snapshot(path, snapshot)
    for old in older:
        old.unlink(missing_ok=True)
    return path


def last_models(folder: Path, file_name: str) -> list[Path]:
    """Snapshots of this game in `folder`, the one of most steps first."""
    pattern = re.compile(re.escape(f"last_model_{file_name}_") + r"(\d+)\.pth")
    found = [
        (int(match[1]), path) for path in folder.glob("*.pth") if (match := pattern.fullmatch(path.name))
    ]
    return [path for _, path in sorted(found, reverse=True)]


def load_snapshot(path: Path) -> Snapshot:
    """Read a snapshot without running any code from it; raises SnapshotError."""
    if not path.is_file():
        raise SnapshotError(f"There is no snapshot {path}.")
    try:
        data = path.read_bytes()
        _check_whole(data)
        loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
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


def _check_tensors(value: Any) -> None:
    """Raises ValueError for tensors that hold less than they claim, or are not plain numbers in memory."""
    if isinstance(value, Mapping):
        value = value.values()
    elif isinstance(value, torch.Tensor):
        is_plain = value.layout == torch.strided and value.device.type == "cpu"
        if not is_plain or value.is_quantized or value.is_nested:
            raise ValueError("a tensor is not a plain one")
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise ValueError("a tensor claims more than it holds")
        return
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        _check_tensors(item)


def _check_part(path: Path, name: str, part: object, kind: type) -> None:
    whole = (
        isinstance(part, kind)
        and not isinstance(part, bool)
        and not (isinstance(part, int) and not 0 <= part < LARGEST_COUNT)
    )
    if name == "acting_weights" and whole and isinstance(part, dict):
        whole = all(isinstance(weight, torch.Tensor) for weight in part.values())
    if not whole or (name in _WEIGHTS and not _is_finite(part)):
        raise SnapshotError(f"The snapshot {path} is damaged: its {name} is not what it should be.")


def _is_finite(value: Any) -> bool:
    """Whether all tensors and numbers of nested dicts and lists are."""
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, torch.Tensor | float) or bool(torch.as_tensor(value).isfinite().all())


def check_holds(path: Path, snapshot: Snapshot, names: Iterable[str]) -> None:
    """Raise SnapshotError where a part lacks."""
    if missing := [name for name in names if name not in snapshot]:
        raise SnapshotError(f"The snapshot {path} lacks {', '.join(missing)}.")


@contextmanager
def restoring() -> Iterator[None]:
    """Parts of a snapshot are taken over within: where they are not what they should be, SnapshotError."""
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
    if isinstance(value, Mapping):
        if value.keys() == {_ARRAY}:
            return _array(value[_ARRAY])
        return {name: _with_arrays(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_with_arrays, value))
    return value


def _array(tensor: object) -> NDArray[Any]:
    if not isinstance(tensor, torch.Tensor) or tensor.requires_grad or tensor.layout != torch.strided:
        raise ValueError("What should be an array is none")
    return np.asarray(tensor.numpy())


def _check_whole(data: bytes) -> None:
    """Compare every record with its CRC-32: torch.save writes them, torch.load does not look at them."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(record.compress_type != zipfile.ZIP_STORED for record in archive.infolist()):
            raise zipfile.BadZipFile("Compressed records are not torch.save's")
        damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"The checksum of {damaged} does not match")


def check_origin(path: Path, snapshot: Snapshot, expected: Mapping[str, object]) -> None:
    """Raise SnapshotError, naming both values, where `snapshot` has other settings than `expected`."""
    for name, value in expected.items():
        found = snapshot.get("settings", {}).get(name)
        if found != value:
            raise SnapshotError(f"The snapshot {path} was made with {name} {found}, not {value}.")
