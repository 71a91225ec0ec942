"""The states of a chunk are those that an agent learns from."""

from __future__ import annotations

import numpy as np
import pytest

from live.page.pictures import as_image, data_url
from live.reading import ReadOnlyClient
from live.sight import newest_seen
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkShape
from memory.runs.keys import Keys
from memory.server.connection import Client
from tests.memory.reference import SHAPES, chunk_of, chunk_to_bytes, feed, random_episodes
from tests.memory.rows import drawn


@pytest.mark.parametrize("shape", SHAPES)
def test_states_are_those_that_are_learned_from(shape: ChunkShape, client: Client, keys: Keys) -> None:
    episodes = random_episodes(np.random.default_rng(0), 120)
    chunks = [chunk_of(draft) for draft in feed(ChunkBuilder(shape), episodes)]
    for number, chunk in enumerate(chunks, start=1):
        data = chunk_to_bytes(chunk, {"actor": 7, "game": "pong"})
        client.hset(keys.chunks, str(number), data)
        seen = newest_seen(ReadOnlyClient(client), keys, number, 7, shape.history_length)
        assert seen is not None and (seen.actor, seen.game, seen.chunk_id) == (7, "pong", number)
        rows = drawn(data, range(chunk.transitions), history=shape.history_length)
        np.testing.assert_array_equal(seen.states, [row.s_tm1 for row in rows])
        np.testing.assert_array_equal(seen.actions, [row.a_tm1 for row in rows])


def test_the_newest_of_an_actor_is_found_behind_those_of_others(client: Client, keys: Keys) -> None:
    episodes = random_episodes(np.random.default_rng(0), 60)
    chunk = chunk_of(feed(ChunkBuilder(SHAPES[0]), episodes)[0])
    for number in range(1, 41):
        client.hset(keys.chunks, str(number), chunk_to_bytes(chunk, {"actor": 2 if number == 5 else 1}))
    client.hset(keys.chunks, "40", b"damaged")
    found = {actor: newest_seen(client, keys, 40, actor, 4) for actor in (None, 1, 2, 3)}
    assert {actor: seen and seen.chunk_id for actor, seen in found.items()} == {
        None: 39,
        1: 39,
        2: 5,
        3: None,
    }


@pytest.mark.parametrize(
    ("frame", "shape"),
    [
        (np.zeros((84, 84), np.uint8), (84, 84)),
        (np.zeros((60, 80, 3), np.uint8), (60, 80, 3)),
        (np.zeros((3, 60, 80), np.uint8), (60, 80, 3)),
        (np.eye(10, dtype=np.float32)[..., None].repeat(4, -1), (10, 10)),
        (np.zeros(4, np.float32), None),
    ],
)
def test_frames_become_pictures(frame: np.ndarray, shape: tuple[int, ...] | None) -> None:
    image = as_image(frame)
    assert (None if image is None else image.shape) == shape
    assert image is None or data_url(image).startswith("data:image/png;base64,")
