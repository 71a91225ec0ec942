from pathlib import Path

import pytest

from reporting.tables import LearningPoint, LearningTable

HEADER = "learner_agent_steps,actor_agent_steps,updates,loss,q\n"


def point(updates: int, **metrics: float) -> LearningPoint:
    return LearningPoint(80 + 4 * updates, 5 * updates, updates, metrics)


def test_a_row_is_the_mean_of_what_was_handed_in(tmp_path: Path) -> None:
    path = tmp_path / "learning_pong.csv"
    table = LearningTable(path, 80)
    table.add([point(updates, loss=loss, q=0.5) for updates, loss in ((1, 2.0), (2, 4.0))])
    table.add([point(3, loss=1 / 3, q=-1.0)])
    assert path.read_text() == HEADER + "88,10,2,3.0,0.5\n92,15,3,0.333333,-1.0\n"
    assert list(table.read()) == [point(2, loss=3.0, q=0.5), point(3, loss=0.333333, q=-1.0)]


@pytest.mark.parametrize("resumed_at", [0, 2, 3, 5])
def test_what_came_after_the_snapshot_is_cut_off(tmp_path: Path, resumed_at: int) -> None:
    path = tmp_path / "a.csv"
    history = LearningTable(path, 80)
    for updates in range(1, 6):
        history.add([point(updates, loss=float(updates))])
    again = LearningTable(path, 80 + 4 * resumed_at)
    kept = [point(updates, loss=float(updates)) for updates in range(1, resumed_at + 1)]
    assert list(again.read()) == kept
    again.add([point(resumed_at + 1, loss=0.5)])
    assert list(LearningTable(path, 10_000).read()) == [*kept, point(resumed_at + 1, loss=0.5)]


def test_another_metric_is_another_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    LearningTable(path, 80)
    history = LearningTable(path, 80)
    history.add([point(1, loss=1.0)])
    history.add([point(2, loss=2.0, q=3.0)])
    history.add([point(3, q=4.0)])
    assert path.read_text() == HEADER + "84,5,1,1.0,\n88,10,2,2.0,3.0\n92,15,3,,4.0\n"
    assert list(LearningTable(path, 1000).read()) == list(history.read())


@pytest.mark.parametrize("lost", range(1, 12))
def test_torn_last_line_is_cut_off(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text((HEADER + "84,5,1,1.0,2.0\n88,10,2,2.0,3.0\n")[:-lost])
    assert list(LearningTable(path, 1000).read()) == [point(1, loss=1.0, q=2.0)]
    assert path.read_text() == HEADER + "84,5,1,1.0,2.0\n"


@pytest.mark.parametrize("text", ["a,b\n", HEADER + "1,2\n", HEADER + "1,2,3,4,long\n"])
def test_other_files_are_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a\.csv"):
        LearningTable(path, 80)
    assert path.read_text() == text
