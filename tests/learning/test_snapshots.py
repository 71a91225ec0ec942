"""Where a learner begins: the newest readable snapshot, and how much is played before learning goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agents.base import Agent, AgentError
from args import read_args
from learning.saved.fill_replay import missing_transitions, unlearned_steps
from learning.saved.folder import newest_snapshot
from learning.saved.snapshot import SnapshotError, load_snapshot, restoring, save_snapshot, wait_for_snapshot
from memory.replay.shape import ReplayShape
from reporting.model_files import last_model_path
from scripts.export_weights import main as export_weights
from wiring.learner import _learning_agent
from wiring.setting import agent_of, setting_of

COUNTS = {"updates": 0, "t_learner": 0, "t_actors": 0, "best_mean": None, "best_episodes": 0}
ORIGIN = {"settings": {"agent": "iqn"}, "agent_state": {}, "acting_weights": {}, **COUNTS}
SHAPE = ReplayShape(memory_capacity=960, chunk_length=16, history_length=4)


@pytest.mark.parametrize(
    ("updates", "slots_then", "slots_now", "missing"),
    [
        (0, 2, 0, 200),  # stopped in warm-up, Redis emptied
        (0, 2, 2, 168),  # stopped in warm-up, replay kept
        (0, 13, 13, 0),  # stopped when warm-up was over
        (9, 50, 50, 0),
        (9, 50, 0, 800),  # the seed's fair rule: as full as it was
        (9, 50, 60, 0),
        (9, 100, 0, 960),  # the ring was made smaller meanwhile
    ],
)
def test_what_is_missing_before_learning_goes_on(
    updates: int, slots_then: int, slots_now: int, missing: int
) -> None:
    snapshot = {"updates": updates, "replay_slots": slots_then}
    assert missing_transitions(snapshot, slots_now, SHAPE, learn_start=200) == missing


def test_afresh_all_of_learn_start_is_missing() -> None:
    assert missing_transitions(None, 0, SHAPE, learn_start=200) == 200


def test_a_damaged_snapshot_is_named_and_the_one_before_it_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_snapshot(last_model_path(tmp_path, "pong", 90), {**ORIGIN, "updates": 1})
    for damaged in (b"", b"no zip file"):
        last_model_path(tmp_path, "pong", 100).write_bytes(damaged)
        snapshot = newest_snapshot(tmp_path, "pong", {"agent": "iqn"})
        assert snapshot is not None and snapshot["updates"] == 1
        assert "last_model_pong_100.pth is damaged" in caplog.text
        caplog.clear()
    last_model_path(tmp_path, "pong", 90).unlink()
    with pytest.raises(SnapshotError, match="No snapshot in .* can be read"):
        newest_snapshot(tmp_path, "pong", {"agent": "iqn"})


def test_one_flipped_bit_or_a_missing_end_is_noticed(tmp_path: Path) -> None:
    """Wherever it lies in the weights: torch.load alone takes it without a word."""
    path = tmp_path / "one.pth"
    save_snapshot(path, {"acting_weights": {"layer": torch.zeros(5000)}})
    whole = path.read_bytes()
    for place in range(len(whole) // 4, 3 * len(whole) // 4, 997):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(SnapshotError, match="checksum"):
            load_snapshot(path)
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(SnapshotError, match="damaged"):
            load_snapshot(path)


@pytest.mark.parametrize(
    "parts",
    [
        {"state": {"numpy array": 5}},
        {"settings": "iqn"},
        {"updates": -1},
        {"updates": True},
        {"acting_weights": {"layer": 5}},
        {"acting_weights": {"layer": torch.tensor([1.0, float("nan")])}},
        {"agent_state": {"online": {"layer": torch.tensor(float("inf"))}}},
    ],
)
def test_a_snapshot_that_is_whole_may_still_hold_what_none_of_ours_does(
    tmp_path: Path, parts: dict[str, object]
) -> None:
    path = last_model_path(tmp_path, "pong", 9)
    torch.save({"format": 1, **ORIGIN, **parts}, path)
    with pytest.raises(SnapshotError, match="is damaged: "):
        load_snapshot(path)


def test_what_lacks_is_named(tmp_path: Path) -> None:
    save_snapshot(last_model_path(tmp_path, "pong", 9), ORIGIN)
    with pytest.raises(SnapshotError, match="last_model_pong_9.pth lacks sampler_generator"):
        newest_snapshot(tmp_path, "pong", {}, ("sampler_generator", "updates"))
    with pytest.raises(SnapshotError, match="cannot be gone on from: no such part"), restoring():
        raise ValueError("no such part")


def test_a_folder_of_other_games_is_not_waited_at_for_ever(tmp_path: Path) -> None:
    save_snapshot(last_model_path(tmp_path, "pong", 90), ORIGIN)
    with pytest.raises(SnapshotError, match="holds last_model_pong_90.pth, and none of breakout"):
        wait_for_snapshot(tmp_path, "breakout", lambda: False)
    found = wait_for_snapshot(tmp_path, "pong", lambda: False)
    assert found is not None and found["settings"] == ORIGIN["settings"]


def test_no_snapshot_of_this_game_means_afresh(tmp_path: Path) -> None:
    save_snapshot(last_model_path(tmp_path, "pong", 90), ORIGIN)
    assert newest_snapshot(tmp_path, "po", {}) is None
    assert newest_snapshot(tmp_path / "missing", "pong", {}) is None


def test_weights_alone_are_enough_to_play_and_to_begin_but_not_to_resume(tmp_path: Path) -> None:
    """What scripts.export_weights keeps is small, and refused by name as something to resume from."""
    settings = {"agent": "iqn", "game": "pong"}
    weights = {"layer": torch.ones(3)}
    counts = {"updates": 1, "t_learner": 2, "t_actors": 3}
    whole = {"settings": settings, "acting_weights": weights, "agent_state": {"online": weights}, **counts}
    save_snapshot(tmp_path / "whole.pth", whole)
    export_weights([str(tmp_path / "whole.pth"), str(tmp_path / "last_model_pong_3.pth")])
    kept = load_snapshot(tmp_path / "last_model_pong_3.pth")
    assert torch.equal(kept["acting_weights"]["layer"], weights["layer"]) and "agent_state" not in kept
    with pytest.raises(SnapshotError, match="weights only"):
        newest_snapshot(tmp_path, "pong", settings)
    export_weights([str(tmp_path / "whole.pth"), str(tmp_path / "half.pth"), "--float16"])
    assert load_snapshot(tmp_path / "half.pth")["acting_weights"]["layer"].dtype == torch.float16
    with pytest.raises(SystemExit):
        export_weights([str(tmp_path / "whole.pth")] * 2)
    assert "agent_state" in load_snapshot(tmp_path / "whole.pth"), "a snapshot does not replace itself"


def test_weights_that_cannot_be_kept_are_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = {"settings": {}, "updates": 1, "t_learner": 2, "t_actors": 3}
    save_snapshot(tmp_path / "whole.pth", {**whole, "acting_weights": {"layer": torch.tensor([1.0, -7e4])}})
    for place, words, sentence in (
        (
            "half.pth",
            ["--float16"],
            "layer has weights beyond 65,504, the largest of float16: leave --float16 out.",
        ),
        (
            "whole.pth/in/half.pth",
            [],
            f"{tmp_path}/whole.pth/in/half.pth cannot be written: Not a directory.",
        ),
    ):
        with pytest.raises(SystemExit) as ended:
            export_weights([str(tmp_path / "whole.pth"), str(tmp_path / place), *words])
        assert ended.value.code == 2 and capsys.readouterr().err == f"error: {sentence}\n"
        assert not (tmp_path / place).exists()


def test_what_was_not_learned_from_is_owed_up_to_the_slack() -> None:
    """What the snapshot owed and what actors played after it, as when a learner was killed."""
    snapshot = {"owed_steps": 12, "t_actors": 1000}
    assert unlearned_steps(snapshot, 1000, slack=800) == 12
    assert unlearned_steps(snapshot, 1020, slack=800) == 32
    assert unlearned_steps(snapshot, 9000, slack=800) == 800
    assert unlearned_steps(None, 9000, slack=800) == 0


def test_a_learner_names_the_flags_of_another_network() -> None:
    words = "--agent dqn --game probe:catch --disable-cuda --hidden-size"
    one, other = (setting_of(read_args(f"{words} {size}".split())) for size in (16, 32))
    snapshot = {
        "agent_state": agent_of(one, learning=True).state_dict(),
        "settings": one.args.shared(),
    }
    with pytest.raises(SnapshotError, match=r"made with --hidden-size 16 \(here 32\)"):
        _learning_agent(other, snapshot)


def test_weights_of_another_agent_name_both(tmp_path: Path) -> None:
    """Those that fit are taken: double_dqn may begin from what dqn has learned."""
    words = "--game probe:catch --disable-cuda --hidden-size 16 --agent"
    dqn = setting_of(read_args(f"{words} dqn".split()))
    weights = agent_of(dqn, learning=False).acting_weights()
    path = tmp_path / "model.pth"
    save_snapshot(path, {**ORIGIN, "acting_weights": weights, "settings": dqn.args.shared()})

    def begun(agent: str) -> Agent:
        return _learning_agent(setting_of(read_args(f"{words} {agent} --model {path}".split())), None)

    torch.testing.assert_close(begun("double_dqn").acting_weights(), weights, rtol=0, atol=0)
    with pytest.raises(AgentError, match=r"made with --agent dqn \(here iqn\)"):
        begun("iqn")
