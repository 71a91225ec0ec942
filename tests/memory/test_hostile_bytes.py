"""Bytes that are not what they should be: each is refused with a named error, and none costs much memory.

Real chunks, rollouts, weights and snapshots are mutated, their checksums often made right again so that what
lies behind them is reached. `FUZZ_CASES` in the environment sets how many cases are tried of each kind;
`--hypothesis-show-statistics` says which share was refused.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgpack
import numpy as np
import pytest
import torch
import zstandard
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from safetensors.torch import save as save_tensors

from acting.links.weights import checked_tensors
from kernels.layouts import GAP_BYTES
from learning.saved.snapshot import SnapshotError, load_snapshot, save_snapshot
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import CHANGES, COLUMNS, ChunkLimits, UnsoundRow, chunk_from_bytes
from memory.chunks.codec import MAGIC, PREFIX, VERSION, CodecError, Meta
from memory.chunks.decoding import unpack
from memory.chunks.encoding import COMPRESSIONS, pack
from memory.chunks.frame_log import word_of
from memory.chunks.reader import Assembly, ChunkReader
from memory.replay.batch import Lookahead
from memory.rollouts.blocks import rollout_from_bytes, rollout_to_bytes
from memory.rollouts.rollout import RolloutLimits
from memory.runs.episodes import parsed_episode
from memory.runs.weights import WeightsError, parse_weights
from tests.memory.random_rollouts import HISTORY, STEPS, random_rollout
from tests.memory.reference import chunk_of, chunk_to_bytes, feed, random_episodes, with_frames
from tests.memory.road import SHAPE
from tests.memory.rows import drawn

ROLLOUTS = RolloutLimits(STEPS, HISTORY, ChunkLimits((4,), "uint8", 4, None, None))
BOTH_KERNELS = pytest.mark.usefixtures("both_kernels")
CASES = int(os.environ.get("FUZZ_CASES", "400"))
MEGABYTE = 1 << 20

WHOLE = chunk_of(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 60))[0])
CHUNK = unpack(chunk_to_bytes(WHOLE, {"run": "r", "epoch": 1, "actor": 0}))
CHUNKS = [pack(*CHUNK, name, rest=CHANGES) for name in COMPRESSIONS]
TENSORS = {"layer.weight": torch.zeros(4, 3), "layer.bias": torch.ones(4)}
"""What mutations start from."""

mutations = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4)
cut = st.floats(0, 1)
fuzzed = settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)


@contextmanager
def refused_or_sound(*errors: type[Exception]) -> Iterator[None]:
    """Nothing but these errors comes of the block."""
    try:
        yield
    except errors as error:
        event(f"refused: {type(error).__name__}")
    else:
        event("sound")


def mutated(data: bytes, changes: list[tuple[float, int]], keep: float) -> bytes:
    """`data` with some bytes replaced, cut short unless `keep` is near 1."""
    found = bytearray(data)
    for place, value in changes:
        found[int(place * len(found))] = value
    return bytes(found if keep > 0.2 else found[: int(5 * keep * len(found))])


def resealed(data: bytes) -> bytes:
    """Packed bytes with the checksum that fits them, where there is a header at all."""
    if len(data) < PREFIX.size:
        return data
    *fields, _ = PREFIX.unpack_from(data)
    return PREFIX.pack(*fields, zlib.crc32(data[PREFIX.size :])) + data[PREFIX.size :]


@BOTH_KERNELS
@fuzzed
@given(st.sampled_from(CHUNKS), mutations, cut, st.booleans())
def test_mutated_chunks(chunk: bytes, changes: list[tuple[float, int]], keep: float, seal: bool) -> None:
    data = mutated(chunk, changes, keep)
    with refused_or_sound(CodecError):
        sealed = resealed(data) if seal else data
        found = chunk_from_bytes(sealed)
        (row,) = drawn(sealed, [0], history=2, lookahead=Lookahead(3, 0.9))
        assert np.isfinite(row.r_t) and (row.s_t[-1] == found.frames[found.places[0, 1]]).all()


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
names = st.sampled_from(COLUMNS)
columns = st.lists(
    st.tuples(
        names,
        st.sampled_from(["|u1", "<f4", "<i8", "<u2", "|b1", "|O"]),
        st.lists(st.integers(0, 3), max_size=4),
    ),
    max_size=7,
)


@BOTH_KERNELS
@fuzzed
@given(
    anything | st.tuples(st.just({}), columns), st.integers(0, 2**32 - 1) | st.none(), st.binary(max_size=60)
)
def test_headers_of_anything(header: object, raw_size: int | None, body: bytes) -> None:
    """A right checksum over a header that says something else."""
    packed = msgpack.packb(header)
    size = len(body) if raw_size is None else raw_size
    seal = zlib.crc32(body, zlib.crc32(packed))
    data = PREFIX.pack(MAGIC, VERSION, 0, len(packed), size, seal) + packed + body
    for read in (unpack, chunk_from_bytes, lambda data: drawn(data, [0]), rollout_from_bytes):
        with refused_or_sound(CodecError):
            read(data)


@fuzzed
@given(mutations, cut, st.booleans())
def test_mutated_rollouts(changes: list[tuple[float, int]], keep: float, seal: bool) -> None:
    meta: Meta = {"actor": 1, "sequence": 2, "updates": 3, "weights_epoch": 4}
    whole = rollout_to_bytes(random_rollout(1), meta)
    data = mutated(whole, changes, keep)
    with refused_or_sound(CodecError):
        rollout = rollout_from_bytes(resealed(data) if seal else data).rollout
        ROLLOUTS.check(rollout)
        assert np.isfinite(rollout.rewards).all() and rollout.a_t.max() < 4


@fuzzed
@given(mutations, cut, st.booleans())
def test_mutated_weights(changes: list[tuple[float, int]], keep: float, seal: bool) -> None:
    """Whatever is taken is finite."""
    payload = mutated(save_tensors(TENSORS), changes, keep)
    header = struct.pack("<2sHIQQQ", b"RW", 1, zlib.crc32(payload) if seal else 0, 1, 2, 3)
    with refused_or_sound(WeightsError):
        tensors = checked_tensors(parse_weights(header + payload).payload)
        assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A place for snapshots, and a real one's bytes."""
    path = tmp_path_factory.mktemp("fuzz") / "one.pth"
    state = {"a": np.ones(3), "b": [1, (2, "c")]}
    save_snapshot(path, {"settings": {}, "acting_weights": TENSORS, "updates": 3, "state": state})
    return path, path.read_bytes()


@fuzzed
@given(mutations, cut)
def test_mutated_snapshots(
    snapshot: tuple[Path, bytes], changes: list[tuple[float, int]], keep: float
) -> None:
    path, whole = snapshot
    path.write_bytes(mutated(whole, changes, keep))
    with refused_or_sound(SnapshotError):
        load_snapshot(path)


tensors = st.lists(st.floats(width=32), max_size=3).map(torch.tensor)
parts = st.sampled_from(["numpy array", "settings", "acting_weights", "agent_state", "updates", "other"])
entries = st.recursive(
    anything | tensors, lambda inner: st.dictionaries(parts, inner, max_size=3), max_leaves=6
)


@fuzzed
@given(st.dictionaries(parts, entries, max_size=4))
def test_snapshots_of_anything(snapshot: tuple[Path, bytes], content: dict[str, object]) -> None:
    """Whole as a file, and holding something else than a run saves."""
    path, _ = snapshot
    torch.save({"format": 1, **content}, path)
    with refused_or_sound(SnapshotError):
        found = load_snapshot(path)
        assert isinstance(found.get("settings", {}), dict) and found.get("updates", 0) >= 0
        for weights in found.get("acting_weights", {}).values():
            assert bool(weights.isfinite().all())


@fuzzed
@given(anything | st.lists(st.integers() | st.floats() | st.booleans() | anything, min_size=8, max_size=12))
def test_episodes_of_anything(content: object) -> None:
    try:
        data = json.dumps(content).encode()
    except TypeError:  # bytes in it, which JSON has not
        data = repr(content).encode()
    episode = parsed_episode(data)
    event("sound" if episode else "left out")
    assert episode is None or (episode.length >= 0 and np.isfinite(episode.score_saber))


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_small_chunk_that_claims_a_terabyte(compression: str) -> None:
    """Refused before anything of that size is asked for: the process may not grow by more than 300 MB."""
    code = COMPRESSIONS[compression][0]
    frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 40) + b"\x01\x00\x00"  # its own content size
    header = msgpack.packb([{}, [["frames", "|u1", [1 << 27]]]])
    for raw_size, body in (
        (2**32 - 1, bytes(1000)),
        (1 << 27, frame if compression == "zstd" else bytes(1000)),
    ):
        data = PREFIX.pack(MAGIC, VERSION, code, len(header), raw_size, 0) + header + body
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(CodecError):
            unpack(resealed(data))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024
    assert zstandard.frame_content_size(frame) == 1 << 40


ACTIONS = int(WHOLE.a_tm1.max()) + 1
LIMITS = ChunkLimits(WHOLE.frames.shape[1:], str(WHOLE.frames.dtype), ACTIONS, None, None)
BOX = ChunkLimits(WHOLE.frames.shape[1:], str(WHOLE.frames.dtype), None, (-1.0,), (1.0,))


@BOTH_KERNELS
@pytest.mark.parametrize(
    ("limits", "changes", "reason"),
    [
        (LIMITS, {"a_tm1": lambda a: a + 1}, "action"),
        (LIMITS, {"a_tm1": lambda a: a - ACTIONS}, "action"),
        (LIMITS, {"a_tm1": lambda a: a.astype(np.float32)}, "action"),
        (LIMITS, {"frames": lambda f: f[:, :1]}, "Frames"),
        (LIMITS, {"frames": lambda f: f.astype(np.float32)}, "Frames"),
        (BOX, {"a_tm1": lambda a: np.full((len(a), 1), np.nan, np.float32)}, "action"),
        (BOX, {"a_tm1": lambda a: np.full((len(a), 1), 1.5, np.float32)}, "action"),
        (BOX, {}, "action"),
    ],
)
def test_values_of_another_environment(
    limits: ChunkLimits, changes: dict[str, Callable[[np.ndarray], np.ndarray]], reason: str
) -> None:
    """Whole, finite, and not of this run."""
    everything = range(WHOLE.transitions)
    assert drawn(chunk_to_bytes(WHOLE, {}), everything, ChunkReader(LIMITS))
    told = {name: change(getattr(WHOLE, name)) for name, change in changes.items()}
    frames = told.pop("frames", WHOLE.frames)
    chunk = with_frames(WHOLE, frames)._replace(**told)
    with pytest.raises(CodecError, match=reason):
        drawn(chunk_to_bytes(chunk, {}), everything, ChunkReader(limits))


@BOTH_KERNELS
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.1, 1.1])
def test_discounts_and_returns_that_no_step_gives(value: float) -> None:
    targets = WHOLE.targets.copy()
    targets[0, 1] = value
    with pytest.raises(CodecError, match="discount|finite"):
        drawn(chunk_to_bytes(WHOLE._replace(targets=targets), {}), [0])


def _packed(raw: bytes, names: Sequence[str] = COLUMNS, **shapes: list[int]) -> bytes:
    """WHOLE with another body, order of columns, or shapes, under a checksum that fits."""
    known = {name: list(CHUNK.columns[name].shape) for name in names}
    told = {**known, CHANGES: [-1], **shapes}
    header = msgpack.packb([{}, [[name, CHUNK.columns[name].dtype.str, told[name]] for name in names]])
    return resealed(PREFIX.pack(MAGIC, VERSION, 0, len(header), len(raw), 0) + header + raw)


RAW = b"".join(CHUNK.columns[name].tobytes() for name in COLUMNS)
CHANGE_BYTES = word_of(CHUNK.columns["frame"].nbytes).itemsize + GAP_BYTES
FRAMES, TRANSITIONS = len(WHOLE.frames), WHOLE.transitions
WORDS = CHUNK.columns["frame"].nbytes // (CHANGE_BYTES - GAP_BYTES)
MOST_BYTES = len(RAW) - CHUNK.columns[CHANGES].nbytes + (FRAMES - 1) * WORDS * CHANGE_BYTES


@BOTH_KERNELS
def test_bodies_of_the_sizes_that_changes_can_have() -> None:
    assert drawn(_packed(RAW), [0])
    assert drawn(_packed(RAW + bytes(MOST_BYTES - len(RAW))), [0])


@BOTH_KERNELS
@pytest.mark.parametrize(
    "data",
    [
        _packed(RAW[: -CHUNK.columns[CHANGES].nbytes - CHANGE_BYTES]),
        _packed(RAW[:CHANGE_BYTES]),
        _packed(RAW + bytes(1)),
        _packed(RAW + bytes(MOST_BYTES - len(RAW) + CHANGE_BYTES)),
        _packed(RAW, (*COLUMNS[:-2], *COLUMNS[:-3:-1])),
        _packed(RAW, (*COLUMNS[:1], *COLUMNS)),
        _packed(RAW, a_tm1=[TRANSITIONS, 0]),
        _packed(RAW, frame=[1 << 20, 1 << 20]),
        _packed(RAW + bytes(10_000_000), rewards=[1 << 20, 2], ended=[1 << 20, 2], frame=[1 << 10]),
    ],
    ids="changes-missing body-missing half-a-change more-changes-than-words rest-in-the-middle a-column-twice"
    " actions-of-no-bytes huge-frames many-frames".split(),
)
def test_bodies_that_no_chunk_has(data: bytes) -> None:
    """Their checksums are right: only sizes tell."""
    with pytest.raises(CodecError):
        drawn(data, [0])
    with pytest.raises(CodecError):
        chunk_from_bytes(data)


@BOTH_KERNELS
def test_a_transition_that_is_not_there() -> None:
    with pytest.raises(CodecError, match="no number"):
        drawn(_packed(RAW), [TRANSITIONS])


@BOTH_KERNELS
def test_a_transition_of_more_steps_than_the_run_takes() -> None:
    places = WHOLE.places.copy()
    taken = int(places[0, 1] - places[0, 0])
    assert drawn(_packed(RAW), [0], lookahead=Lookahead(taken, 0.9))
    with pytest.raises(CodecError, match="more steps"):
        drawn(_packed(RAW), [0], lookahead=Lookahead(taken - 1, 0.9))


@BOTH_KERNELS
@pytest.mark.parametrize("frame", [0, 1])
def test_frames_that_are_not_finite(frame: int) -> None:
    """In the first frame and in what changed."""
    frames = WHOLE.frames.astype(np.float32)
    limits = ChunkLimits(frames.shape[1:], "float32", ACTIONS, None, None)
    assert drawn(chunk_to_bytes(with_frames(WHOLE, frames), {}), [0], ChunkReader(limits))
    frames[frame, 0] = np.nan
    with pytest.raises(CodecError, match="finite"):
        drawn(chunk_to_bytes(with_frames(WHOLE, frames), {}), [0], ChunkReader(limits))


SIZES = [(name, size) for name in COMPRESSIONS for size in (-1, 1)]


@BOTH_KERNELS
@pytest.mark.parametrize(("compression", "more"), SIZES)
def test_bodies_of_another_size_than_said(compression: str, more: int) -> None:
    """The size said is one that a chunk may have; the row that is refused is named."""
    data = pack(*CHUNK, compression, rest=CHANGES)
    *fields, raw_size, checksum = PREFIX.unpack_from(data)
    other = PREFIX.pack(*fields, raw_size + more * CHANGE_BYTES, checksum) + data[PREFIX.size :]
    assembly = Assembly(ChunkReader(), 3, 1)
    with pytest.raises(UnsoundRow, match="bytes|decompress") as caught:
        assembly.add((data, resealed(other), data), (0, 0, 0))
        assembly.batch(*[np.zeros(3)] * 3)
    assert caught.value.row == 1


@BOTH_KERNELS
@pytest.mark.parametrize(
    "body", [b"", bytes(1), b"\xff" * 1000, bytes(range(256)) * 8, b"\x1f\xff\xff" + b"\xff" * 64]
)
def test_bodies_that_lz4_never_wrote(body: bytes) -> None:
    """Lengths that lead beyond both ends, matches from before the first byte."""
    header_size = PREFIX.unpack_from(CHUNKS[1])[3]
    sound = CHUNKS[1][: PREFIX.size + header_size]
    with pytest.raises(CodecError, match="decompress"):
        drawn(resealed(sound + body), [0])


@BOTH_KERNELS
@pytest.mark.parametrize("compression", list(COMPRESSIONS))
def test_large_chunks_are_not_held_together(compression: str) -> None:
    """Each of 10 MB, which zeros pack into little, or into as much."""
    count, words = 1 << 12, 1 << 12
    chunk = with_frames(WHOLE, np.zeros((count, words), np.uint8))._replace(
        rewards=np.zeros((count, 2), np.float32),
        ended=np.zeros((count, 2), np.bool_),
    )
    meta, columns = unpack(chunk_to_bytes(chunk, {}))
    columns[CHANGES] = np.zeros(10_000_002, np.uint8)  # gaps of 0: the same word again and again
    rows = 32
    huge, assembly = pack(meta, columns, compression, CHANGES), Assembly(ChunkReader(), rows, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assembly.add([huge] * rows, [0] * rows)
    assembly.batch(*[np.zeros(rows)] * 3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024
