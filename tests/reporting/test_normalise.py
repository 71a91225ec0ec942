import pytest

from reporting.measures.fitness import normalised


def test_random_play_is_zero_and_the_reference_is_one() -> None:
    assert normalised("pong", -20.7) == (0.0, 0.0)
    assert normalised("pong", 14.6).human == pytest.approx(1.0)
    assert normalised("alien", 251916.0).world_record == pytest.approx(1.0)
    assert normalised("space_invaders", 1680.15) == pytest.approx(
        ((1680.15 - 148) / 1520.7, (1680.15 - 148) / 621387.0)
    )


def test_figures_are_those_of_one_table() -> None:
    assert normalised("alien", 227.8).human == 0.0  # 228.8 elsewhere
    assert normalised("jamesbond", 302.8).human == pytest.approx(1.0)  # 29 and 302.8, not 7 and 29


@pytest.mark.parametrize("game", ["air_raid", "carnival", "elevator_action", "pooyan"])
def test_games_without_a_human_score(game: str) -> None:
    fractions = normalised(game, 1000.0)
    assert fractions.human is None
    assert fractions.world_record is not None


def test_games_without_a_record() -> None:
    assert normalised("surround", 6.5).human == pytest.approx(1.0)
    assert normalised("surround", 6.5).world_record is None
    assert normalised("journey_escape", 0.0) == (None, None)


def test_other_environments_have_no_reference() -> None:
    assert normalised("CartPole-v1", 500.0) == (None, None)
