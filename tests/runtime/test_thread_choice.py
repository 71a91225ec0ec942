"""The number of threads follows what updates took, now and then."""

from __future__ import annotations

import torch

from runtime.thread_choice import FIRST_PAUSE, LONGEST_PAUSE, ROUNDS, UPDATES_PER_TURN, ThreadChoice


class Machine:
    """On which an update takes as long as its table says of the threads that are set."""

    def __init__(self, seconds: dict[int, float]) -> None:
        self.seconds, self.threads, self.now = seconds, 0, 0.0
        self.set_to: list[int] = []

    def set_threads(self, number: int) -> None:
        """As torch.set_num_threads."""
        self.threads = number
        self.set_to.append(number)

    def update(self, choice: ThreadChoice, first_costs: float = 0.0) -> None:
        """One that takes longer where the number of threads is new."""
        before = self.threads
        with choice:
            self.now += self.seconds[self.threads] + (first_costs if self.threads != before else 0.0)

    def choice(self, most: int) -> ThreadChoice:
        """One whose clock is this machine's."""
        choice = ThreadChoice(most, self.set_threads, lambda: self.now)
        while choice.trying:
            self.update(choice, first_costs=100.0)
        return choice


def test_takes_the_quickest() -> None:
    """What a change of number costs does not count."""
    assert Machine({1: 4.0, 2: 3.0, 4: 2.0, 8: 5.0}).choice(8).threads == 4
    assert Machine({1: 1.0, 3: 2.0}).choice(3).threads == 1


def test_tries_again_after_longer_and_longer_pauses() -> None:
    machine = Machine({1: 1.0, 2: 2.0})
    choice = machine.choice(2)
    assert machine.threads == 1
    machine.seconds = {1: 2.0, 2: 1.0}
    trial, pauses = ROUNDS * UPDATES_PER_TURN * 2, []
    for _ in range(6):
        pauses.append(0)
        while not choice.trying:
            assert choice.threads == machine.threads
            machine.update(choice)
            pauses[-1] += 1
        for _ in range(trial):
            assert choice.trying
            machine.update(choice)
        assert choice.threads == machine.threads == 2
    assert pauses == [trial * n for n in (FIRST_PAUSE, 20, 40, 80, LONGEST_PAUSE, LONGEST_PAUSE)]


def test_one_thread_is_no_choice() -> None:
    machine = Machine({1: 1.0})
    machine.threads = 1
    choice = machine.choice(1)
    machine.update(choice)
    assert not choice.trying and not machine.set_to


def test_sets_the_threads_of_torch() -> None:
    before = torch.get_num_threads()
    choice = ThreadChoice(2)
    try:
        seen = set()
        while choice.trying:
            with choice:
                seen.add(torch.get_num_threads())
        assert seen == {1, 2}
        assert torch.get_num_threads() == choice.threads
    finally:
        torch.set_num_threads(before)
