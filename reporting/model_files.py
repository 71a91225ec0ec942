"""What a run's snapshots are called, and which of them lie in a folder. It imports no torch."""

import re
from pathlib import Path


def last_model_path(folder: Path, file_name: str, t_actors: int) -> Path:
    """`last_model_<game>_<steps>.pth`; steps are T_actors."""
    return folder / f"last_model_{file_name}_{t_actors}.pth"


def best_model_path(folder: Path, file_name: str) -> Path:
    """`best_model_<game>.pth`."""
    return folder / f"best_model_{file_name}.pth"


def last_models(folder: Path, file_name: str = "*") -> list[Path]:
    """Snapshots of this game in `folder`, or of any, the one of most steps first."""
    return numbered_files(folder, f"last_model_{file_name}_", ".pth")


def steps_in(folder: Path, file_name: str = "*") -> int:
    """The steps of the newest snapshot, by its name; 0 where there is none."""
    return max((int(path.stem.rpartition("_")[2]) for path in last_models(folder, file_name)), default=0)


def numbered_files(folder: Path, prefix: str, suffix: str) -> list[Path]:
    """Files whose name has nothing but a number between `prefix`, where * is anything, and `suffix`; the
    largest number first.
    """
    pattern = re.compile(re.escape(prefix).replace(r"\*", ".*") + r"(\d+)" + re.escape(suffix))
    named = ((pattern.fullmatch(path.name), path) for path in folder.glob("*"))
    found = [(int(match[1]), path) for match, path in named if match and path.is_file()]
    return [path for _, path in sorted(found, reverse=True)]
