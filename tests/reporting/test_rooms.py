from reporting.episodes import EpisodeRecord
from reporting.run_page import first_visits, rooms_figure


def _episode(steps: int, rooms: list[int]) -> EpisodeRecord:
    return EpisodeRecord(0, steps, 0, steps, 0, 1.0, 1.0, 1.0, 10, rooms=rooms)


EPISODES = [_episode(900, [1, 2]), _episode(100, [1]), _episode(500, [0, 1]), _episode(700, [])]
"""As they came: several actors' episodes are not in the order of their ends."""


def test_first_visits_are_those_of_the_earliest_episode() -> None:
    assert list(first_visits(EPISODES).items()) == [(1, 100), (0, 500), (2, 900)]
    assert first_visits(EPISODES[3:]) == {}


def test_the_figure_names_every_room_at_its_step() -> None:
    stair, rooms = rooms_figure(EPISODES).data
    assert list(zip(rooms.x, rooms.y, rooms.text, strict=True)) == [
        (100, 1, "room 1"),
        (500, 2, "room 0"),
        (900, 3, "room 2"),
    ]
    assert (stair.x[-1], stair.y[-1]) == (900, 3)
    assert not rooms_figure(EPISODES[3:]).data
