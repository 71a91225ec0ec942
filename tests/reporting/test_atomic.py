import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reporting.atomic import write_atomically
from tests.processes import ROOT


def test_replaces_the_whole_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "model.pth"
    write_atomically(path, b"old and long")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pth"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "atomic", b"")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_without_room_is_told_with_its_bytes_and_those_that_are_free(tmp_path: Path) -> None:
    """No file of that process may grow past 2,000 bytes, while the disk has room."""
    code = (
        "import pathlib, resource, sys; from reporting.atomic import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try: write_atomically(pathlib.Path(sys.argv[1]), bytes(1_234_567))\n"
        "except OSError as error: print(error.strerror)"
    )
    path = tmp_path / "model.pth"
    said = subprocess.check_output([sys.executable, "-c", code, str(path)], cwd=ROOT, text=True)
    found = re.fullmatch(r"File too large: (.*) needs 1,234,567 bytes, ([\d,]+) are free\n", said)
    assert found and found[1] == str(path)
    free = int(found[2].replace(",", ""))
    assert abs(free - shutil.disk_usage(tmp_path).free) < 1 << 30, "others write meanwhile"
    assert not list(tmp_path.iterdir())
