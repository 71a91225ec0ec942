"""Short runs of tests/chaos.py: a few faults, each of which the run must survive by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import main
from tests.faults.disk import BYTES, NO_DISK, OwnDisk
from tests.faults.kinds import KINDS, fitting


@pytest.mark.slow
def test_a_short_run_survives(capfd: pytest.CaptureFixture[str]) -> None:
    """A cut connection, a server without memory, and one that is killed and comes back with its log."""
    words = "--minutes 0 --seed 2 --modes always --agents iqn --actors 1"
    code = main([*words.split(), "--kinds", "cut_connections", "fill_memory", "kill_redis"])
    story = capfd.readouterr().out
    assert code == 0, story
    assert "| all | all | all | 3 | 3 | 0 |" in story


@pytest.mark.slow
def test_a_server_that_refuses_is_survived(capfd: pytest.CaptureFixture[str]) -> None:
    """A failover, a script without end, a password, connections that swallow all, chunks taken away."""
    words = "--minutes 0 --seed 2 --modes none --agents iqn --actors 1"
    code = main([*words.split(), "--kinds", "readonly", "busy", "noauth", "half_open", "hole"])
    story = capfd.readouterr().out
    assert code == 0, story
    assert "| all | all | all | 5 | 5 | 0 |" in story


@pytest.mark.slow
def test_two_learners_survive(capfd: pytest.CaptureFixture[str]) -> None:
    """One of them is killed, then torchrun itself; connections that swallow all, and chunks taken away."""
    words = "--minutes 0 --seed 2 --modes none --agents iqn_by_two --actors 1"
    code = main(
        [*words.split(), "--kinds", "kill_rank", "kill_learner", "cut_connections", "half_open", "hole"]
    )
    story = capfd.readouterr().out
    assert code == 0, story
    assert "| all | all | all | 5 | 5 | 0 |" in story


@pytest.mark.slow
def test_a_shard_that_dies_is_survived(capfd: pytest.CaptureFixture[str]) -> None:
    """The server of the second shard is killed, then silent; then the learner is killed."""
    words = "--minutes 0 --seed 2 --modes everysec --agents iqn_in_shards"
    code = main([*words.split(), "--kinds", "kill_shard", "stop_shard", "kill_learner"])
    story = capfd.readouterr().out
    assert code == 0, story
    assert "| all | all | all | 3 | 3 | 0 |" in story


@pytest.mark.slow
def test_a_failover_is_survived(capfd: pytest.CaptureFixture[str]) -> None:
    """On a Redis Cluster: a master is killed and its replica takes over; chunks are taken away."""
    words = "--minutes 0 --seed 2 --modes replicas --agents iqn_in_shards"
    code = main([*words.split(), "--kinds", "failover", "hole"])
    story = capfd.readouterr().out
    assert code == 0, story
    assert "| all | all | all | 2 | 2 |" in story


def test_a_run_meets_with_the_faults_of_its_servers() -> None:
    """Those of other shards or replicas where there are any, those of the first server but on a cluster."""
    assert set(KINDS) - set(fitting(list(KINDS), "always", "iqn")) == {"kill_shard", "stop_shard", "failover"}
    assert set(KINDS) - set(fitting(list(KINDS), "none", "iqn_in_shards")) == {"failover"}
    left = fitting(
        ["kill_redis", "kill_shard", "half_open", "failover", "hangup"], "replicas", "iqn_in_shards"
    )
    assert left == ["failover", "hangup"]


def test_a_fault_that_no_run_can_meet_with_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main("--modes none --agents iqn --kinds failover".split())
    assert end.value.code == 2
    assert "none of these --modes and --agents can meet with any of these --kinds" in capsys.readouterr().err


@pytest.mark.slow
def test_a_closed_terminal_and_a_full_disk_are_survived(capfd: pytest.CaptureFixture[str]) -> None:
    """SIGHUP to learner or actor; no room under results/, for real where a file system can be had."""
    words = "--minutes 0 --seed 2 --modes always --agents iqn --actors 1"
    code = main([*words.split(), "--kinds", "hangup", "fill_disk"])
    story = capfd.readouterr().out
    assert code == 0, story
    assert "| all | all | all | 2 | 2 | 0 |" in story


@pytest.mark.slow
def test_a_file_system_of_its_own_can_be_full(tmp_path: Path) -> None:
    """Where neither a mount nor a namespace is allowed there is none, and that is said."""
    disk = OwnDisk(tmp_path)
    try:
        write = f"{sys.executable} -c 'import sys; open(sys.argv[1], \"wb\").write(bytes({2 * BYTES}))'"
        words = [*disk.enter, "sh", "-c", f"{write} {tmp_path}/file"]
        if disk.kind == NO_DISK:
            pytest.skip(f"a file system of its own: {NO_DISK}")
        ended = subprocess.run(words, capture_output=True, text=True)
        assert "No space left on device" in ended.stderr
        assert 0 < (disk.seen_from_here / "file").stat().st_size <= BYTES
    finally:
        disk.close()
    assert not list(tmp_path.iterdir())
