"""One actor of a machine fetches weights for all; whatever becomes of it, the others get theirs."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from acting.links import shared_weights
from acting.links.shared_weights import SHARED_MEMORY, NotShared, SharedWeightsReader
from args import UserError, read_args
from learning.publishing import packing_as
from memory.runs.keys import Keys
from memory.runs.weights import Weights, packed_weights, parse_weights, publish_weights
from memory.server.connection import Client
from tests.faults.disk import NO_DISK, OwnDisk
from tests.memory.road import begin
from tests.test_processes import KEYS, Stage
from wiring.setting import setting_of
from wiring.sources import check_store

MakeReader = Callable[[], SharedWeightsReader]


@pytest.fixture
def epoch(client: Client, keys: Keys) -> int:
    return begin(client, keys, 400).epoch


@pytest.fixture
def reader(client: Client, keys: Keys, tmp_path: Path) -> MakeReader:
    return lambda: SharedWeightsReader(client, keys, "here:1", tmp_path)


@pytest.fixture
def stage(redis_socket: str, client: Client, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(redis_socket, tmp_path)
    yield stage
    stage.leave()


def _weights(epoch: int, updates: int) -> Weights:
    return Weights(epoch, updates, 4 * updates, save({"w": torch.full((3,), float(updates))}))


def _publish(client: Client, keys: Keys, epoch: int, updates: int) -> Weights:
    publish_weights(client, keys, sent := _weights(epoch, updates))
    return sent


def _shared_files(memory: Path, ending: str = "weights") -> list[Path]:
    return list(memory.glob(f"rainbow-weights-{os.getuid()}/*.{ending}"))


@contextmanager
def _another_fetches(memory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock for a fetch, and does nothing."""
    (lock,) = _shared_files(memory, "fetching")
    words = "import fcntl, sys, time; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX)"
    command = [sys.executable, "-c", f"{words}; print('mine', flush=True); time.sleep(60)", str(lock)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "mine\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_one_fetches_for_all(client: Client, keys: Keys, epoch: int, reader: MakeReader) -> None:
    """Others get a version that Redis no longer holds; and each version is returned once."""
    first, second = reader(), reader()
    assert first.poll() is None
    sent = _publish(client, keys, epoch, 1)
    assert first.poll() == sent
    client.delete(keys.weights)
    assert second.poll() == sent
    assert first.poll() is None and second.poll() is None
    assert first.seen == second.seen == sent.version


def test_other_versions_and_damaged_ones_are_fetched(
    client: Client, keys: Keys, epoch: int, reader: MakeReader, tmp_path: Path
) -> None:
    """What is shared is old, half written, or of another version than it says; then it is right again."""
    one, other = reader(), reader()
    assert one.poll() is None
    _publish(client, keys, epoch, 7)
    assert one.poll() == other.poll() == _weights(epoch, 7)
    (path,) = _shared_files(tmp_path)
    for updates, found in (
        (5, path.read_bytes()),
        (6, packed_weights(_weights(epoch, 6))[:-4]),
        (8, packed_weights(_weights(epoch, 9))),
        (9, b""),
    ):
        sent = _publish(client, keys, epoch, updates)
        path.write_bytes(found)
        assert one.poll() == sent and path.read_bytes() == packed_weights(sent)
        client.delete(keys.weights)
        assert other.poll() == sent


def test_who_waits_for_a_fetch_takes_what_it_brought(
    client: Client, keys: Keys, epoch: int, reader: MakeReader, tmp_path: Path
) -> None:
    """Also where that is newer than what it waited for."""
    one, other = reader(), reader()
    _publish(client, keys, epoch, 1)
    assert one.poll() == other.poll() is not None
    (path,) = _shared_files(tmp_path)
    with _another_fetches(tmp_path) as fetcher, ThreadPoolExecutor(1) as thread:
        _publish(client, keys, epoch, 2)
        waiting = thread.submit(other.poll)
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        sent = _publish(client, keys, epoch, 3)
        client.delete(keys.weights)
        path.write_bytes(packed_weights(sent))
        fetcher.kill()
        assert waiting.result(20) == sent


@pytest.mark.parametrize("fate", ["killed", "stopped"])
def test_a_fetcher_that_is_gone_blocks_nobody(
    fate: str,
    client: Client,
    keys: Keys,
    epoch: int,
    reader: MakeReader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel frees the lock of one that was killed; a stopped one is waited for, for a while, and what it
    has to share then stays its own.
    """
    one, other = reader(), reader()
    _publish(client, keys, epoch, 1)
    assert one.poll() is not None
    monkeypatch.setattr(shared_weights, "LONGEST_WAIT_S", 30.0 if fate == "killed" else 0.3)
    with _another_fetches(tmp_path) as fetcher:
        sent, began = _publish(client, keys, epoch, 2), time.monotonic()
        fetcher.send_signal(signal.SIGKILL if fate == "killed" else signal.SIGSTOP)
        assert other.poll() == sent
        assert time.monotonic() - began < 10
        (path,) = _shared_files(tmp_path)
        assert (path.read_bytes() == packed_weights(sent)) == (fate == "killed")


def test_a_file_goes_with_its_last_reader(
    client: Client, keys: Keys, epoch: int, reader: MakeReader, tmp_path: Path
) -> None:
    """And one that killed processes left behind with the next reader of any run."""
    one, other = reader(), reader()
    _publish(client, keys, epoch, 1)
    assert one.poll() is not None
    del one
    gc.collect()
    assert _shared_files(tmp_path)
    del other
    gc.collect()
    assert not _shared_files(tmp_path)
    for ending in ("weights", "new"):
        (tmp_path / f"rainbow-weights-{os.getuid()}" / f"left.{ending}").touch()
    reader()
    assert not _shared_files(tmp_path) + _shared_files(tmp_path, "new")


def test_servers_and_runs_share_nothing(client: Client, keys: Keys, epoch: int, tmp_path: Path) -> None:
    _publish(client, keys, epoch, 1)
    readers = [SharedWeightsReader(client, keys, server, tmp_path) for server in ("here:1", "here:2")]
    assert all(each.poll() is not None for each in readers)
    assert len(_shared_files(tmp_path)) == 2


def test_memory_that_is_full_is_said_once(
    client: Client, keys: Keys, epoch: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each actor fetches its own then."""
    disk = OwnDisk(tmp_path)
    try:
        if disk.kind == NO_DISK:
            pytest.skip("no file system can be filled here")
        one = SharedWeightsReader(client, keys, "here", disk.seen_from_here)
        with (disk.seen_from_here / "ballast").open("wb", buffering=0) as ballast, pytest.raises(OSError):
            while True:
                ballast.write(bytes(1 << 12))
        for updates in (1, 2):
            sent = _publish(client, keys, epoch, updates)
            assert one.poll() == sent
        assert caplog.text.count("Weights cannot be written to") == 1
        assert not _shared_files(disk.seen_from_here) + _shared_files(disk.seen_from_here, "new")
    finally:
        disk.close()


def test_a_folder_that_was_removed_is_made_again(
    client: Client,
    keys: Keys,
    epoch: int,
    reader: MakeReader,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Where that fails, each fetches its own, and says so once."""
    one, other = reader(), reader()
    (folder,) = tmp_path.iterdir()
    shutil.rmtree(folder)
    sent = _publish(client, keys, epoch, 1)
    assert one.poll() == sent
    client.delete(keys.weights)
    assert other.poll() == sent and not caplog.records
    shutil.rmtree(folder)
    folder.touch()
    for updates in (2, 3):
        sent = _publish(client, keys, epoch, updates)
        assert one.poll() == sent
    (told,) = caplog.messages
    assert told.startswith(f"{folder} cannot be made (") and told.endswith("Each actor here fetches its own.")
    folder.unlink()


@pytest.mark.parametrize("fault", ["open", "a link", "nowhere"])
def test_a_folder_that_others_can_write_to_is_refused(
    fault: str, client: Client, keys: Keys, tmp_path: Path
) -> None:
    folder = tmp_path / f"rainbow-weights-{os.getuid()}"
    if fault == "open":
        folder.mkdir()
        folder.chmod(0o777)
    elif fault == "a link":
        folder.symlink_to(tmp_path, target_is_directory=True)
    memory = tmp_path / "nowhere" if fault == "nowhere" else tmp_path
    with pytest.raises(NotShared, match="leave --share-weights out"):
        SharedWeightsReader(client, keys, "here", memory)


def test_rounded_weights_take_half_and_biases_stay() -> None:
    """Matrices and kernels are rounded to the nearest; counts, biases and doubles are not."""
    weights = {
        "kernel": torch.randn(8, 4, 3, 3, generator=torch.Generator().manual_seed(0)),
        "bias": torch.rand(8),
        "mean": torch.rand(4, 4, dtype=torch.float64),
        "count": torch.tensor([[1 << 40]]),
    }
    sent = load(packing_as("bfloat16")(weights))
    assert sent["kernel"].dtype == torch.bfloat16
    assert torch.allclose(sent["kernel"].float(), weights["kernel"], rtol=2**-8, atol=0)
    for name in ("bias", "mean", "count"):
        assert torch.equal(sent[name], weights[name])
    assert packing_as("float32") is save


def test_agents_without_a_replay_act_with_their_own_weights() -> None:
    words = "--game probe:catch --agent a2c --weights-dtype bfloat16".split()
    with pytest.raises(UserError, match="is for agents with a replay: a2c"):
        check_store(setting_of(read_args(words)).args)


@pytest.mark.slow
def test_actors_of_a_run_share_rounded_weights(stage: Stage) -> None:
    """Real processes: rounded weights lie in shared memory while they play, and nothing is left there."""
    words = "--share-weights", "--weights-dtype", "bfloat16", "--T-max", 3000, "--nb-actor", 3
    before = set(_shared_files(SHARED_MEMORY))
    processes = [stage.learner(*words), *(stage.actor(number, *words) for number in range(3))]
    stage.until(lambda: bool(set(_shared_files(SHARED_MEMORY)) - before))
    for process in processes:
        process.ends(0)
    assert not set(_shared_files(SHARED_MEMORY)) - before
    assert stage.snapshot()["t_learner"] == 3000
    assert all(weight.dtype == torch.float32 for weight in stage.snapshot()["acting_weights"].values())
    sent = load(parse_weights(stage.client.get(KEYS.weights)).payload)
    assert {weight.dtype for weight in sent.values()} == {torch.float32, torch.bfloat16}
