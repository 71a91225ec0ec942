"""A snapshot and a replay that commit acb6ace saved are read."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from kernels import choice
from learning.saved.snapshot import load_snapshot
from memory.chunks.decoding import unpack
from memory.chunks.reader import Assembly, ChunkReader
from memory.replay.dump import SIZE, read_dump
from reporting.model_files import last_models
from tests.kernel_choice import using
from tests.processes import run

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests/fixtures/acb6ace"
DUMP = FIXTURES / "replay_CartPole-v1_424.dump"
SAVED = FIXTURES / "last_model_CartPole-v1_424.pth"
BATCH = "34354eeee5e2c33f715bc930f724db1621d9f6464f6e716891212a500ffcda59"
"""SHA-256 of the batch of all first transitions, as acb6ace itself read them."""


@pytest.mark.parametrize("kernels", choice.KINDS)
def test_its_chunks_hold_the_same_transitions(kernels: str) -> None:
    with DUMP.open("rb") as file:
        layout = json.loads(str(unpack(file.read(SIZE.unpack(file.read(SIZE.size))[0])).meta["layout"]))
        layout.pop("chunk_format")
        file.seek(0)
        values = [packet.data for packet in read_dump(file, DUMP.stat().st_size, layout, 8)]
    with using(kernels):
        assembly = Assembly(ChunkReader(), len(values), history=1)
        assembly.add(values, [0] * len(values))
        batch = assembly.batch(*[np.zeros(len(values))] * 3)
    columns = batch.s_tm1, batch.a_tm1, batch.r_t, batch.discount_t, batch.s_t
    assert hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest() == BATCH


def test_a_serial_run_resumes_from_it_and_continues_to_learn(redis_socket: str, tmp_path: Path) -> None:
    """With its replay: nothing is played before it learns again."""
    folder = shutil.copytree(FIXTURES, tmp_path / "results")
    words = "--serial --threads 1 --memory-capacity 256 --hidden-size 16 --learn-start 100 --T-max 600"
    words += (
        " --noisy-epsilon-steps 0 --replay-frequency 4 --target-update 100 --lr-end 0.0005"  # as its spec was
    )
    log = tmp_path / "log"
    spec = ("--spec", ROOT / "specs/classic/cartpole_iqn.yaml", "--chunk-length", 8, "--save-replay")
    place = ("--host-redis", redis_socket, "--run", "fixture", "--path-to-results", folder)
    run("launch_learner.py", *words.split(), *spec, *place, log=log)
    before, after = load_snapshot(SAVED), load_snapshot(last_models(folder, "CartPole-v1")[0])
    assert after["updates"] > before["updates"]
    assert "replay_CartPole-v1_424.dump" in log.read_text()
