from pathlib import Path

import pytest

from reporting.learning import LearningHistory, LearningPoint

HEADER = "learner_agent_steps,actor_agent_steps,updates,loss,q\n"


def point(updates: int, **metrics: float) -> LearningPoint:
    return LearningPoint(80 + 4 * updates, 5 * updates, updates, metrics)


def test_a_row_is_the_mean_of_what_was_told_since_the_last(tmp_path: Path) -> None:
    path = tmp_path / "learning_pong.csv"
    history = LearningHistory(path, 80)
    for updates, loss in ((1, 2.0), (2, 4.0)):
        history.add(point(updates, loss=loss, q=0.5))
    assert history.points == []
    history.flush()
    history.flush()
    history.add(point(3, loss=1 / 3, q=-1.0))
    history.flush()
    assert path.read_text() == HEADER + "88,10,2,3.0,0.5\n92,15,3,0.333333,-1.0\n"
    assert history.points == [point(2, loss=3.0, q=0.5), point(3, loss=0.333333, q=-1.0)]


def test_rows_are_written_when_due(tmp_path: Path) -> None:
    history = LearningHistory(tmp_path / "a.csv", 80, every_s=0.0)
    history.add(point(1, loss=1.0))
    assert history.points == [point(1, loss=1.0)]


@pytest.mark.parametrize("resumed_at", [0, 2, 3, 5])
def test_what_came_after_the_snapshot_is_cut_off(tmp_path: Path, resumed_at: int) -> None:
    path = tmp_path / "a.csv"
    history = LearningHistory(path, 80, every_s=0.0)
    for updates in range(1, 6):
        history.add(point(updates, loss=float(updates)))
    again = LearningHistory(path, 80 + 4 * resumed_at, every_s=0.0)
    kept = [point(updates, loss=float(updates)) for updates in range(1, resumed_at + 1)]
    assert again.points == kept
    again.add(point(resumed_at + 1, loss=0.5))
    assert LearningHistory(path, 10_000).points == [*kept, point(resumed_at + 1, loss=0.5)]


def test_another_metric_is_another_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    LearningHistory(path, 80).flush()
    history = LearningHistory(path, 80, every_s=0.0)
    history.add(point(1, loss=1.0))
    history.add(point(2, loss=2.0, q=3.0))
    history.add(point(3, q=4.0))
    assert path.read_text() == HEADER + "84,5,1,1.0,\n88,10,2,2.0,3.0\n92,15,3,,4.0\n"
    assert LearningHistory(path, 1000).points == history.points


@pytest.mark.parametrize("lost", range(1, 12))
def test_torn_last_line_is_cut_off(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text((HEADER + "84,5,1,1.0,2.0\n88,10,2,2.0,3.0\n")[:-lost])
    assert LearningHistory(path, 1000).points == [point(1, loss=1.0, q=2.0)]
    assert path.read_text() == HEADER + "84,5,1,1.0,2.0\n"


@pytest.mark.parametrize("text", ["a,b\n", HEADER + "1,2\n", HEADER + "1,2,3,4,long\n"])
def test_other_files_are_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a\.csv"):
        LearningHistory(path, 80)
    assert path.read_text() == text
