"""What ale-py does to a score that grows beyond its counter, shown on the real games."""

import numpy as np
import pytest
from ale_py import ALEInterface, LoggerMode, roms

from envs.atari.games import without_rollover

RAM_START = 0x80  # of the console's address space
BCD = {  # addresses of the score's bytes, two digits each, highest first; from ALE's src/ale/games/supported
    "asterix": (0xDE, 0xDF, 0xE0),
    "video_pinball": (0xB4, 0xB2, 0xB0),
    "atlantis": (0xA1, 0xA3, 0xA2),
}
DEFENDER_DIGITS = (0xA1, 0xA0, 0x9F, 0x9E, 0x9D, 0x9C)  # one decimal digit each, highest first


def load(game: str) -> ALEInterface:
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    path = roms.get_rom_path(game)
    assert path is not None
    ale.loadROM(path)
    ale.reset_game()
    return ale


def write_score(ale: ALEInterface, game: str, digits: str) -> None:
    if game == "defender":
        values = zip(DEFENDER_DIGITS, (int(digit) for digit in digits), strict=True)
    else:
        pairs = [int(digits[i : i + 2], 16) for i in range(0, len(digits), 2)]
        values = zip(BCD[game], pairs, strict=True)
    for address, value in values:
        ale.setRAM(address - RAM_START, value)


def rewards_after(game: str, digits: str, frames: int) -> list[int]:
    """Plays at random with the score's digits set after 300 frames; returns all later non-zero rewards."""
    ale = load(game)
    generator = np.random.default_rng(3)
    for _ in range(300):
        ale.act(int(generator.integers(18)))
    write_score(ale, game, digits)
    ale.act(0)  # shows the jump that setRAM made
    rewards = [ale.act(int(generator.integers(18))) for _ in range(frames)]
    return [reward for reward in rewards if reward != 0]


@pytest.mark.parametrize(
    ("game", "digits", "counter", "most"),
    [
        ("asterix", "999950", 1e6, 500),
        ("video_pinball", "999999", 1e6, 2000),
        ("defender", "999950", 1e6, 200),
        ("atlantis", "999999", 1e8, 5000),  # in hundreds
    ],
)
def test_a_counter_that_restarts_is_corrected(game: str, digits: str, counter: float, most: int) -> None:
    rewards = rewards_after(game, digits, frames=1500)
    fallen = [reward for reward in rewards if reward < 0]
    assert len(fallen) == 1
    assert -counter < fallen[0] < -0.99 * counter
    corrected = without_rollover(np.array(rewards, np.int32))
    assert corrected.min() >= 0
    assert corrected.max() <= most
    assert corrected.sum() == sum(rewards) + counter


def test_atlantis_needs_nothing_at_one_million() -> None:
    rewards = rewards_after("atlantis", "009999", frames=1500)  # 999,900; the screen shows 000001 next
    assert len(rewards) > 3
    assert all(0 < reward <= 5000 for reward in rewards)


def test_defender_gives_the_points_it_shows() -> None:
    ale = load("defender")
    generator = np.random.default_rng(0)
    rewards = [ale.act(int(generator.integers(18))) for _ in range(2500)]
    low_nibbles = [int(ale.getRAM()[address - RAM_START]) & 0xF for address in DEFENDER_DIGITS]
    shown = int("".join("0" if digit == 0xA else str(digit) for digit in low_nibbles))  # 0xA is a blank
    assert sum(rewards) == shown > 0
    assert set(rewards) <= {0, 50, 100, 150, 200, 250, 500, 1000}
    assert rewards[:10] == [0] * 10


def test_usual_rewards_stay_as_they_are() -> None:
    rewards = np.array([0, 1, -1, 30, -30_000, 999_999, -900_000], np.int32)
    assert np.array_equal(without_rollover(rewards), rewards)
    assert without_rollover(rewards).dtype == np.float64
