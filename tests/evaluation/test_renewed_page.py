"""A run's page after its learner has ended: an evaluation writes it anew, where it is that run's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from args import Args, read_args
from reporting.atomic import csv_bytes
from reporting.tables import HEADER
from wiring.record.page import renew_page

GAME, NAME = "pettingzoo:tictactoe_v3", "pettingzoo_tictactoe_v3"


def run_of(folder: Path, args: Args) -> str:
    """A finished run's files, as far as a page needs them; the path of its snapshot."""
    row = [0, 1, 0, 40, 30, 1.0, 1.0, 1.0, 7, 0, "", "", GAME, 0]
    (folder / f"{NAME}.csv").write_bytes(csv_bytes([HEADER, row]))
    (folder / f"Reward_{NAME}.html").write_text("as it was")
    record = {"arguments": args.model_dump(), "commit": {"hash": "0123456789abcdef", "dirty": False}}
    (folder / f"run_{NAME}.json").write_text(json.dumps(record))
    return str(folder / "last_model.pth")


def test_it_says_of_the_run_what_its_learner_said(tmp_path: Path) -> None:
    """Its settings and commit, not those of the evaluation, nor where its server was."""
    model = run_of(tmp_path, read_args(["--game", GAME, "--lr", "0.001", "--host-redis", "ours.example"]))
    page = renew_page(model, read_args(["--game", GAME, "--seed", "9"]), tmp_path)
    assert page is not None
    text = page.read_text(encoding="utf-8")
    assert "<td>--lr</td><td>0.001</td>" in text and "0123456789ab" in text and "--seed" not in text
    assert "ours.example" not in text
    assert "<dt>Agent steps</dt><dd>40 " in text


def test_what_is_no_page_of_the_snapshot_s_run_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = read_args(["--game", GAME])
    model = run_of(tmp_path, args)
    (tmp_path / "elsewhere").mkdir()
    for other in (None, str(tmp_path / "elsewhere" / "last_model.pth")):
        assert renew_page(other, args, tmp_path) is None
    record = json.loads((tmp_path / f"run_{NAME}.json").read_text())
    record["arguments"]["a_flag_of_before"] = 3
    (tmp_path / f"run_{NAME}.json").write_text(json.dumps(record))
    assert renew_page(model, args, tmp_path) is None
    assert f"Reward_{NAME}.html stays as it was: the run is of another version" in capsys.readouterr().out
    assert (tmp_path / f"Reward_{NAME}.html").read_text() == "as it was"


def test_an_error_without_a_text_is_named_by_its_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise LookupError

    args = read_args(["--game", GAME])
    model = run_of(tmp_path, args)
    monkeypatch.setattr("wiring.record.page.write_run_html", fails)
    assert renew_page(model, args, tmp_path) is None
    assert "(LookupError: )" in capsys.readouterr().out
