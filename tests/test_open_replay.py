"""Which runs a notebook can look into."""

from __future__ import annotations

import pytest

from args import read_args
from memory.runs.keys import Keys
from memory.runs.run import open_run
from memory.server.connection import Client
from rainbow_iqn_apex import open_replay


def test_a_part_of_a_replay_is_not_shown_as_the_whole(client: Client, redis_socket: str) -> None:
    for run, shards in (("one", 1), ("three", 3)):
        settings = read_args(["--history-length", "1", "--memory-capacity", "100"]).shared()
        open_run(client, Keys(run), {**settings, "shards": shards}, False, 0, {}, "token")
    assert len(open_replay("one", host=redis_socket)) == 0
    with pytest.raises(ValueError, match="^The replay of run 'three' lies in 3 shards: open_replay looks"):
        open_replay("three", host=redis_socket)
