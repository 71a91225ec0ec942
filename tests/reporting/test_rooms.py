from reporting.history import RunHistory
from reporting.pages.run_page import rooms_figure
from reporting.tables import EpisodeRecord


def _episode(steps: int, rooms: list[int]) -> EpisodeRecord:
    return EpisodeRecord(0, steps, 0, steps, 0, 1.0, 1.0, 1.0, 10, rooms=rooms)


EPISODES = [_episode(900, [1, 2]), _episode(100, [1]), _episode(500, [0, 1]), _episode(700, [])]
"""As they came: several actors' episodes are not in the order of their ends."""


def run(episodes: list[EpisodeRecord]) -> RunHistory:
    history = RunHistory(["montezuma_revenge"])
    for episode in episodes:
        history.add(episode)
    return history


def test_first_visits_are_those_of_the_earliest_episode() -> None:
    assert run(EPISODES).first_visits == {1: 100, 0: 500, 2: 900}
    assert run(EPISODES[3:]).first_visits == {}


def test_the_figure_names_every_room_at_its_step() -> None:
    stair, rooms = rooms_figure(run(EPISODES)).data
    assert list(zip(rooms.x, rooms.y, rooms.text, strict=True)) == [
        (100, 1, "room 1"),
        (500, 2, "room 0"),
        (900, 3, "room 2"),
    ]
    assert (stair.x[-1], stair.y[-1]) == (900, 3)
