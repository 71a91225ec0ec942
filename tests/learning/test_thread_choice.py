"""The number of threads follows what updates took, now and then."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import launch_learner
from agents.parts.parallel import Threads, in_parallel, set_threads
from args import read_args
from learning.thread_choice import FIRST_PAUSE, LONGEST_PAUSE, ThreadChoice, longest_trial
from memory.server.connection import Client
from supervision.stopping import Stop
from wiring import canonical, thread_choice

ONE, TWO = Threads(1), Threads(2)


class Machine:
    """On which an update takes as long as its table says of the threads that are set."""

    def __init__(self, seconds: dict[Threads, float]) -> None:
        self.seconds, self.threads, self.now = seconds, Threads(0), 0.0
        self.set_to: list[Threads] = []

    def set_threads(self, threads: Threads) -> None:
        """As PyTorch's are set."""
        self.first_costs = 100.0 if threads != self.threads else 0.0
        self.threads = threads
        self.set_to.append(threads)

    def update(self, choice: ThreadChoice) -> float:
        """One that takes longer where the number of threads is new; returns the seconds it took."""
        before = self.now
        with choice:
            self.now += self.seconds[self.threads] + self.first_costs
            self.first_costs = 0.0
        return self.now - before

    def choice(self, most: int, passes: int = 1) -> ThreadChoice:
        """One whose clock is this machine's."""
        choice = ThreadChoice(most, passes, self.set_threads, lambda: self.now)
        while choice.trying:
            self.update(choice)
        return choice


def _machine(seconds: dict[int, float]) -> Machine:
    """One whose updates do one pass at a time."""
    return Machine({Threads(number): taken for number, taken in seconds.items()})


def test_takes_the_quickest() -> None:
    """What a change of number costs does not count."""
    assert _machine({1: 4.0, 2: 3.0, 4: 2.0, 8: 2.9}).choice(8).threads == Threads(4)
    assert _machine({1: 1.0, 3: 2.0}).choice(3).threads == ONE
    assert _machine({1: 1.0, 2: 1.2}).choice(2).threads == ONE


def test_passes_side_by_side_are_tried_with_half_of_the_threads_each() -> None:
    """Of as many as there may be, and of half of these."""
    seconds = {Threads(6): 3.5, Threads(3, 2): 3.0, Threads(3): 2.6, Threads(1, 2): 2.5, ONE: 3.4}
    machine = Machine(seconds)
    assert machine.choice(6, passes=2).threads == Threads(1, 2)
    assert set(machine.set_to) == set(seconds)
    assert Machine({ONE: 1.0}).choice(1, passes=2).threads == Threads(1)


def test_what_is_quick_side_by_side_does_not_keep_fewer_threads_from_being_tried() -> None:
    seconds = {Threads(4): 2.0, Threads(2, 2): 1.0, TWO: 1.6, Threads(1, 2): 0.8, ONE: 1.5}
    assert Machine(seconds).choice(4, passes=2).threads == Threads(1, 2)


def test_what_is_hopeless_side_by_side_does_not_keep_fewer_threads_from_being_tried() -> None:
    machine = Machine({Threads(4): 2.0, Threads(2, 2): 9.0, TWO: 1.5, Threads(1, 2): 9.0, ONE: 1.0})
    assert machine.choice(4, passes=2).threads == ONE
    assert machine.set_to.count(Threads(2, 2)) <= 3


def test_does_not_try_what_is_hopeless() -> None:
    """Half of the threads take nearly twice as long: fewer are not even tried."""
    machine = _machine({1: 16.0, 2: 8.0, 4: 4.0, 8: 2.0, 16: 1.0})
    assert machine.choice(16).threads == Threads(16)
    assert set(machine.set_to) == {Threads(8), Threads(16)}
    assert machine.set_to.count(Threads(8)) <= 3


def test_tries_again_after_longer_and_longer_pauses() -> None:
    """In the time that the last trial took, whatever is quickest now."""
    machine, spent = Machine({ONE: 1.0, TWO: 1.4}), 0.0
    choice = ThreadChoice(2, 1, machine.set_threads, lambda: machine.now)
    pauses: list[float] = []
    for _ in range(9):
        while choice.trying:
            spent += machine.update(choice)
        trial, spent = spent, 0.0
        while not choice.trying:
            assert choice.threads == machine.threads == ONE
            spent += machine.update(choice)
        pauses.append(spent / trial)
        spent = 0.0
    wanted = [FIRST_PAUSE, 2, 4, 8, 16, 32, 64, LONGEST_PAUSE, LONGEST_PAUSE]
    assert pauses == pytest.approx(wanted, rel=0.2)


def test_waiting_between_updates_does_not_make_the_pause_longer() -> None:
    """A learner waits for actors, or for a Redis that is away."""

    def updates_until_next_trial(waits_s: float) -> int:
        machine, updates = Machine({ONE: 1.0, TWO: 1.4}), 0
        choice = ThreadChoice(2, 1, machine.set_threads, lambda: machine.now)
        while choice.trying:
            machine.update(choice)
            machine.now += waits_s
        while not choice.trying and updates < 10_000:
            machine.update(choice)
            updates += 1
        return updates

    assert updates_until_next_trial(0.0) == updates_until_next_trial(1000.0) < 10_000


def test_the_choice_may_change() -> None:
    machine = Machine({ONE: 1.0, TWO: 2.0})
    choice = machine.choice(2)
    machine.seconds = {ONE: 2.0, TWO: 1.0}
    while not choice.trying:
        machine.update(choice)
    while choice.trying:
        machine.update(choice)
    assert choice.threads == machine.threads == TWO


def test_one_thread_is_no_choice() -> None:
    machine = Machine({ONE: 1.0})
    machine.set_threads(ONE)
    choice = machine.choice(1)
    machine.update(choice)
    assert not choice.trying and machine.set_to == [ONE]


def test_a_failed_update_is_the_callers() -> None:
    choice = ThreadChoice(2, 1, lambda _: None)
    with pytest.raises(ValueError, match="diverged"), choice:
        raise ValueError("diverged")


def test_sets_the_threads_of_torch() -> None:
    before = torch.get_num_threads()
    choice, seen, updates = ThreadChoice(2, 1), set(), 0
    try:
        while choice.trying:
            with choice:
                seen.add(torch.get_num_threads())
            updates += 1
        assert seen <= {1, 2} and 2 in seen and updates <= longest_trial(2, 1)
        assert torch.get_num_threads() == choice.threads.each
    finally:
        set_threads(Threads(before))


def test_nothing_is_tried_where_the_number_is_given_or_compiled_for() -> None:
    """Compiled passes would be compiled again for each number."""
    assert thread_choice(read_args(["--disable-cuda"])) is not None
    assert thread_choice(read_args(["--disable-cuda", "--threads", "2"])) is None
    assert thread_choice(read_args(["--disable-cuda", "--compile", "default"])) is None


@pytest.mark.parametrize(("agent", "beside"), [("iqn", True), ("naf", True), ("a2c", False)])
def test_two_passes_are_tried_where_an_agent_can_do_them(agent: str, beside: bool) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        choice = thread_choice(read_args(["--disable-cuda", "--agent", agent]))
        assert choice is not None
        in_other_threads = set()
        while choice.trying:
            with choice:
                first, second = in_parallel(threading.get_ident, threading.get_ident)
            in_other_threads.add(first != second)
        assert (True in in_other_threads) == beside
    finally:
        set_threads(Threads(before))


def test_a_learner_that_begins_again_keeps_its_choice(
    client: Client, redis_socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis lost the replay: the threads that were chosen last are not the most that there may be."""
    choices: list[Any] = []

    def learn(threads: ThreadChoice | None, *_: object) -> bool:
        choices.append(threads)
        return len(choices) == 2

    monkeypatch.setattr(launch_learner, "_learn", learn)
    words = (
        f"--game probe:catch --disable-cuda --host-redis {redis_socket} --path-to-results {tmp_path}".split()
    )
    launch_learner.run_learner(canonical(read_args(words)), Stop())
    assert isinstance(choices[0], ThreadChoice) and choices[0] is choices[1]
