from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from reporting.tensorboard import Scalars


def read(folder: Path, tag: str) -> list[tuple[int, float]]:
    events = EventAccumulator(str(folder)).Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_tensorboard_reads_what_was_added(tmp_path: Path) -> None:
    scalars = Scalars(tmp_path / "tensorboard")
    scalars.add(4, {"loss": 0.5, "speed/learner": 100.0})
    scalars.add(8, {"loss": 0.25})
    assert read(tmp_path / "tensorboard", "loss") == [(4, 0.5), (8, 0.25)]
    assert read(tmp_path / "tensorboard", "speed/learner") == [(4, 100.0)]


def test_a_resumed_run_takes_back_what_came_after_its_snapshot(tmp_path: Path) -> None:
    scalars = Scalars(tmp_path)
    for step in range(5):
        scalars.add(step, {"loss": float(step)})
    Scalars(tmp_path, purge_step=3).add(3, {"loss": -3.0})
    assert read(tmp_path, "loss") == [(0, 0.0), (1, 1.0), (2, 2.0), (3, -3.0)]
