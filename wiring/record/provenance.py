"""What is needed to do a run again: its arguments, its code and its machine."""

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import distributions
from pathlib import Path

from reporting.atomic import write_json

_REPOSITORY = Path(__file__).parents[2]
_CHANGES = "status", "--porcelain", "--", ".", ":(exclude)results"


def write_run_json(
    path: Path,
    arguments: Mapping[str, object],
    seed: int,
    command: Sequence[str],
    began: int,
    gpu: str | None = None,
) -> None:
    """Writes `run_<game>.json`: command, arguments, seed, commit, versions, machine; no environment variable.

    Args:
        arguments: every parameter by name; values that JSON does not know are written as text.
        command: the words of the command line.
        began: the first epoch of the run, by which Redis has it too.
        gpu: name of the accelerator that the caller uses, None on the CPU.
    """
    run = {
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": list(command),
        "seed": seed,
        "began": began,
        "arguments": dict(arguments),
        "commit": commit(),
        "python": platform.python_version(),
        "packages": _packages(),
        "machine": {**machine(), "gpu": gpu},
    }
    write_json(path, run)


def commit() -> dict[str, object] | None:
    """Hash of the code's commit, and whether files differ from it; files in results/ do not count.

    None where the code is no git checkout.
    """
    head = _git("rev-parse", "HEAD")
    return None if head is None else {"hash": head, "dirty": bool(_git(*_CHANGES))}


def _git(*words: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", _REPOSITORY, *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def _packages() -> dict[str, str]:
    read = (distribution.metadata for distribution in distributions())  # a file each time
    found = {metadata["Name"]: metadata["Version"] for metadata in read}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def machine() -> dict[str, object]:
    """System, processor, cores and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
    }


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
