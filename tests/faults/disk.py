"""A small file system under one folder, which can really be full: mounted by root, or in a namespace."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BYTES = 32 << 20
MOUNTED, IN_NAMESPACE, NO_DISK = "a tmpfs", "a tmpfs in a user namespace", "none: RLIMIT_FSIZE instead"
_HOLD = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec sleep infinity'


class OwnDisk:
    """A tmpfs at `folder`. `kind` says how; NO_DISK where this system lets nobody here mount any."""

    def __init__(self, folder: Path) -> None:
        self.folder = self.seen_from_here = folder
        self.enter: list[str] = []
        """What a command is started by that is to write there."""
        self._holder: subprocess.Popen[str] | None = None
        self.kind = NO_DISK
        if _mounts(folder):
            self.kind = MOUNTED
        elif shutil.which("unshare") and shutil.which("nsenter") and self._hold():
            self.kind = IN_NAMESPACE

    def _hold(self) -> bool:
        """A process in whose namespace it is mounted, as long as that lives."""
        words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _HOLD, "sh", str(BYTES)]
        self._holder = subprocess.Popen(
            [*words, str(self.folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "mounted\n":
            self.close()
            return False
        place = f"/proc/{self._holder.pid}"
        self.enter = [
            "nsenter",
            f"--user={place}/ns/user",
            f"--mount={place}/ns/mnt",
            "--preserve-credentials",
        ]
        self.seen_from_here = Path(f"{place}/root{self.folder}")
        return True

    def close(self) -> None:
        """Give it back."""
        if self.kind == MOUNTED:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=False)
        if self._holder is not None:
            self._holder.kill()
            self._holder.communicate()
        self.kind, self._holder = NO_DISK, None


def _mounts(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={BYTES}", "tmpfs", str(folder)]
    if shutil.which("mount") is None:
        return False
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """No file of this process may grow past so many bytes, while the disk has room."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
