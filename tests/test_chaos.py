"""Short runs of tests/chaos.py: a few faults, each of which the run must survive by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.chaos import main
from tests.faults.disk import BYTES, NO_DISK, OwnDisk
from tests.faults.kinds import KINDS, fitting


class Story(NamedTuple):
    """What a short run meets with: as --modes, --agents and --kinds."""

    mode: str
    agent: str
    kinds: str
    actors: int = 1  # at least one a shard


STORIES = {
    "a cut connection, no memory, a server that comes back": Story(
        "always", "iqn", "cut_connections fill_memory kill_redis"
    ),
    "a failover, a script without end, a password, swallowed answers, lost chunks": Story(
        "none", "iqn", "readonly busy noauth half_open hole"
    ),
    "one of two learners, then torchrun, is killed": Story(
        "none", "iqn_by_two", "kill_rank kill_learner cut_connections half_open hole"
    ),
    "the second shard is killed, then silent": Story(
        "everysec", "iqn_in_shards", "kill_shard stop_shard kill_learner", 2
    ),
    "a replica of a cluster takes over": Story("replicas", "iqn_in_shards", "failover hole", 2),
    "a closed terminal, a full disk": Story("always", "iqn", "hangup fill_disk"),
}


@pytest.mark.slow
@pytest.mark.parametrize("told", STORIES)
def test_a_short_run_survives(told: str, capfd: pytest.CaptureFixture[str]) -> None:
    mode, agent, kinds, actors = STORIES[told]
    words = f"--minutes 0 --seed 2 --modes {mode} --agents {agent} --actors {actors} --kinds {kinds}"
    code = main(words.split())
    story, faults = capfd.readouterr().out, len(kinds.split())
    assert code == 0, story
    lost = "" if mode == "replicas" else " 0 |"  # a replica may lack the last pushes
    assert f"| all | all | all | {faults} | {faults} |{lost}" in story


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
