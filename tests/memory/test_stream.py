"""Answers come in order, and a client is sound whatever became of them."""

from __future__ import annotations

import pytest
import redis

from memory.connection import Client
from memory.stream import stream

COMMANDS = [("HMGET", "hash", name, "none") for name in ("a", "b", "c")]


@pytest.fixture
def held(client: Client) -> Client:
    client.hset("hash", mapping={"a": b"1", "b": b"2", "c": bytes(300_000)})
    return client


def test_answers_come_in_the_order_of_the_commands(held: Client) -> None:
    assert list(stream(held, COMMANDS)) == [[b"1", None], [b"2", None], [bytes(300_000), None]]
    assert list(stream(held, [])) == []


def test_answers_that_nobody_reads_are_not_taken_for_those_of_the_next_command(held: Client) -> None:
    answers = stream(held, COMMANDS)
    assert next(answers) == [b"1", None]
    answers.close()
    assert held.hget("hash", "b") == b"2"


def test_an_answer_may_be_an_error(held: Client) -> None:
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        list(stream(held, [*COMMANDS, ("LLEN", "hash"), *COMMANDS]))
    assert held.hget("hash", "a") == b"1"
