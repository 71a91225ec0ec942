"""A replay that went to disk and back is the same replay."""

from __future__ import annotations

import io
import json
import os
import random
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import torch
from isal.isal_zlib import crc32

from args import read_args
from launch_learner import run_learner
from learning.saved.fill_replay import ReplayDump
from learning.saved.snapshot import load_snapshot
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import CHUNK_ID, chunk_from_bytes, chunk_id_of
from memory.chunks.codec import MAGIC, PLAIN, PREFIX, VERSION
from memory.chunks.decoding import unpack
from memory.chunks.encoding import pack
from memory.replay.dump import COLUMNS_FORMAT, SIZE, DumpError, read_dump
from memory.replay.replay import Replay
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.push import Packet
from memory.runs.run import LearnerSlot
from memory.server.connection import Client
from memory.server.patience import Patience
from supervision.process import Stop
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, make_replay, packets
from wiring.code import canonical

CAPACITY = 4000
PATIENCE = Patience(5.0)
LAYOUT = {"game": "none", "discount": 0.9, "multi_step": 3}


@pytest.fixture
def replay(client: Client, keys: Keys) -> Replay:
    """Overwritten in part, its priorities all different."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    drafts = feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), CAPACITY + 100))
    pusher.push(packets(drafts))
    lease.release()
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    replay.load()
    return replay


def _dump(
    folder: Path, client: Client, keys: Keys, replay: Replay, epoch: int = 0, **other: object
) -> ReplayDump:
    """Of a learner that has opened `epoch`."""
    lease: Any = None
    slot = LearnerSlot(client, keys, lease, epoch, PATIENCE)
    return ReplayDump(folder, "none", slot, replay.shape, {**LAYOUT, **other})


def _held(client: Client, keys: Keys) -> list[tuple[bytes, ...]]:
    """Columns and leaves of every chunk, oldest first."""
    chunks, leaves = client.hgetall(keys.chunks), client.hgetall(keys.priorities)
    rows = sorted((chunk_id_of(row), row[CHUNK_ID.size :]) for row in leaves.values())
    return [
        (*(np.asarray(column).tobytes() for column in chunk_from_bytes(chunks[b"%d" % chunk_id])), row)
        for chunk_id, row in rows
    ]


def _lose(client: Client, keys: Keys) -> int:
    """Redis forgets everything; a learner opens the run anew."""
    client.flushall()
    return begin(client, keys, CAPACITY).epoch


def test_every_chunk_comes_back_with_its_priorities(
    client: Client, keys: Keys, replay: Replay, tmp_path: Path
) -> None:
    before, dump = _held(client, keys), _dump(tmp_path, client, keys, replay)
    dump.save(7)
    dump.save(12)
    assert [path.name for path in tmp_path.iterdir()] == ["replay_none_12.dump"], "only the newest is kept"
    _dump(tmp_path, client, keys, replay, _lose(client, keys)).restore()
    assert _held(client, keys) == before and len(before) == replay.shape.slots
    assert read_counters(client, keys).steps == 0, "nobody played them now"


def test_damage_is_named_and_what_is_whole_is_used(
    client: Client, keys: Keys, replay: Replay, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before, dump = _held(client, keys), _dump(tmp_path, client, keys, replay)
    dump.save(1)
    (path,) = tmp_path.iterdir()
    whole, middle = path.read_bytes(), path.stat().st_size // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged, reason in (
        (flipped, "damaged"),
        (whole[:middle], "end is missing"),
        (b"", "end is missing"),
    ):
        path.write_bytes(damaged)
        caplog.clear()
        _dump(tmp_path, client, keys, replay, _lose(client, keys)).restore()
        assert f"{path} cannot be restored any further" in caplog.text and reason in caplog.text
        restored = _held(client, keys)
        assert restored == before[: len(restored)]
        assert (len(restored) > len(before) // 3) == bool(damaged)


@pytest.mark.parametrize("row", [b"odd", np.full(SHAPE.chunk_length, -1, np.float32).tobytes()])
def test_damaged_priorities_cost_their_own_chunk_alone(
    row: bytes, client: Client, keys: Keys, replay: Replay, tmp_path: Path
) -> None:
    """Whoever wrote them to Redis: what comes after them in the dump is restored."""
    dump, slot = _dump(tmp_path, client, keys, replay), replay.shape.slots // 2
    stored = client.hget(keys.priorities, slot)
    assert stored is not None
    before = [held for held in _held(client, keys) if held[-1] != stored[CHUNK_ID.size :]]
    client.hset(keys.priorities, slot, stored[: CHUNK_ID.size] + row)
    dump.save(1)
    _dump(tmp_path, client, keys, replay, _lose(client, keys)).restore()
    assert _held(client, keys) == before and len(before) == replay.shape.slots - 1


@pytest.mark.parametrize("layout", ["[]", "5", "null", "x", "[" * 100_000])
def test_a_layout_of_anything_is_damage(layout: str) -> None:
    record = pack({"layout": layout}, {}, "none")
    data = SIZE.pack(len(record)) + record
    with pytest.raises(DumpError):
        list(read_dump(io.BytesIO(data), len(data), LAYOUT, SHAPE.chunk_length))


ODD: list[Any] = [
    0,
    -1,
    2**63,
    1e308,
    float("nan"),
    "x",
    "9" * 5000,
    "[" * 5000,
    True,
    None,
    [1],
    {"a": 1},
    [2**40],
]


def _sealed(meta: object, rows: object, raw: bytes) -> bytes:
    """A record whose checksum is right, whatever its header says."""
    header = msgpack.packb([meta, rows])
    checksum = crc32(raw, crc32(header))
    return bytes(PREFIX.pack(MAGIC, VERSION, PLAIN, len(header), len(raw), checksum) + header + raw)


def _hostile_record(dice: random.Random, packet: Packet) -> bytes:
    """A chunk as of a dump in which one thing is another."""
    found = unpack(packet.data)
    columns = {**found.columns, "leaves": packet.leaves}
    rows: list[list[Any]] = [[name, each.dtype.str, list(each.shape)] for name, each in columns.items()]
    raw = b"".join(np.ascontiguousarray(column).tobytes() for column in columns.values())
    meta: Any = dict(found.meta)
    match dice.randrange(4):
        case 0:
            meta = dice.choice([{"chunks": dice.choice(ODD)}, dice.choice(ODD)])
        case 1:
            dice.choice(rows)[dice.randrange(3)] = dice.choice(ODD)
        case 2:
            rows.remove(dice.choice(rows))
        case 3:
            raw = raw[: dice.randrange(len(raw))] + dice.randbytes(dice.randrange(9))
    return _sealed(meta, rows, raw)


def test_records_whose_checksums_are_right_and_whose_contents_are_not() -> None:
    """Each is damage that is named; what came before it is good."""
    dice, layout = random.Random(1), {**LAYOUT, "chunk_format": COLUMNS_FORMAT}
    good = packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 40)), 1.0)
    head = pack({"layout": json.dumps(layout)}, {}, "none")
    for _ in range(500):
        records = [head, *(_whole_record(packet) for packet in good[:2]), _hostile_record(dice, good[2])]
        data = b"".join(SIZE.pack(len(record)) + record for record in records)
        read = list[Packet]()
        with pytest.raises(DumpError):
            for packet in read_dump(io.BytesIO(data), len(data), LAYOUT, SHAPE.chunk_length):
                read.append(packet)
        assert len(read) >= 2


def _whole_record(packet: Packet) -> bytes:
    found = unpack(packet.data)
    return pack(found.meta, {**found.columns, "leaves": packet.leaves}, "zstd")


def test_what_is_called_like_a_dump_and_is_no_file_is_left_alone(
    client: Client, keys: Keys, replay: Replay, tmp_path: Path
) -> None:
    """A pipe would be waited for without end."""
    dump = _dump(tmp_path, client, keys, replay)
    dump.save(1)
    (tmp_path / "replay_none_7.dump").mkdir()
    os.mkfifo(tmp_path / "replay_none_8.dump")
    epoch = _lose(client, keys)
    _dump(tmp_path, client, keys, replay, epoch).restore()
    assert read_counters(client, keys).last_chunk == replay.shape.slots


def test_a_dump_of_other_settings_is_left_alone(
    client: Client, keys: Keys, replay: Replay, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _dump(tmp_path, client, keys, replay).save(1)
    _dump(tmp_path, client, keys, replay, _lose(client, keys), discount=0.5).restore()
    assert "made with discount 0.9, not 0.5" in caplog.text
    assert _held(client, keys) == []


def test_a_run_whose_redis_was_emptied_learns_on_at_once(
    client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """Without --save-replay it would first refill 400 steps."""
    words = (
        "--serial --game probe:catch --memory-capacity 400 --learn-start 100 --batch-size 8 --hidden-size 16"
        " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --threads 1 --save-replay"
    ).split()
    threads, updates = torch.get_num_threads(), []
    for t_max in (500, 600):
        place = ["--host-redis", redis_socket, "--path-to-results", str(tmp_path), "--T-max", str(t_max)]
        run_learner(canonical(read_args([*words, *place])), Stop())
        (path,) = tmp_path.glob("last_model_*")
        updates.append(load_snapshot(path)["updates"])
        client.flushall()
    torch.set_num_threads(threads)
    assert updates[1] - updates[0] >= 100 // 4 - 1


def test_a_dump_of_another_version_is_left_alone(
    client: Client,
    keys: Keys,
    replay: Replay,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as other_version:
        other_version.setattr("memory.replay.dump.COLUMNS_FORMAT", COLUMNS_FORMAT + 1)
        _dump(tmp_path, client, keys, replay).save(1)
    _dump(tmp_path, client, keys, replay, _lose(client, keys)).restore()
    assert f"made with chunk_format {COLUMNS_FORMAT + 1}, not {COLUMNS_FORMAT}" in caplog.text
    assert _held(client, keys) == []
