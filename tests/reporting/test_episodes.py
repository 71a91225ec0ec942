import csv
from pathlib import Path

import pytest

from reporting.tables import HEADER, EpisodeRecord, EpisodeTable, read_episodes


def record(actor: int, sequence: int, score: float = 10.5, evaluation: bool = False) -> EpisodeRecord:
    scores = (score, score + 1, score + 2)
    counts = [[sequence, 0, 12], [3, 4, 5]]
    steps = (1000 * sequence, 800 * sequence)
    return EpisodeRecord(
        actor, sequence, 2, *steps, *scores, 321, evaluation, counts, [1, sequence + 2], "pong"
    )


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_header_is_there_before_the_first_episode(tmp_path: Path) -> None:
    path = tmp_path / "results" / "pong.csv"
    assert list(EpisodeTable(path).read()) == []
    assert rows(path) == [list(HEADER)]


def test_an_episode_is_written_once_even_by_a_later_process(tmp_path: Path) -> None:
    path = tmp_path / "pong.csv"
    table = EpisodeTable(path)
    assert table.add([record(0, 0), record(0, 1), record(0, 0)]) == [record(0, 0), record(0, 1)]
    assert table.add([record(0, 1), record(1, 1)]) == [record(1, 1)]
    again = EpisodeTable(path)
    assert list(again.read()) == list(table.read()) == [record(0, 0), record(0, 1), record(1, 1)]
    assert again.add([record(1, 1)]) == []
    assert rows(path)[1:] == [
        ["0", "0", "2", "0", "0", "10.5", "11.5", "12.5", "321", "0", "0 0 12|3 4 5", "1 2", "pong", "0"],
        [
            "0",
            "1",
            "2",
            "1000",
            "800",
            "10.5",
            "11.5",
            "12.5",
            "321",
            "0",
            "1 0 12|3 4 5",
            "1 3",
            "pong",
            "0",
        ],
        [
            "1",
            "1",
            "2",
            "1000",
            "800",
            "10.5",
            "11.5",
            "12.5",
            "321",
            "0",
            "1 0 12|3 4 5",
            "1 3",
            "pong",
            "0",
        ],
    ]


def test_scores_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "pong.csv"
    exact = record(0, 0, score=0.1 + 0.2, evaluation=True)
    EpisodeTable(path).add([exact])
    assert list(EpisodeTable(path).read()) == [exact]


@pytest.mark.parametrize("lost", range(1, 40))
def test_torn_last_line_is_cut_off_and_can_be_written_again(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "pong.csv"
    EpisodeTable(path).add([record(0, 0), record(0, 1)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    table = EpisodeTable(path)
    table.add([record(0, 0), record(0, 1)])
    assert list(table.read()) == [record(0, 0), record(0, 1)]
    assert path.read_bytes() == whole


def test_a_reader_leaves_a_growing_table_as_it_is(tmp_path: Path) -> None:
    """Its writer may be in the middle of a row, or about to make the file."""
    path = tmp_path / "pong.csv"
    assert list(read_episodes(path)) == [] and not path.exists()
    EpisodeTable(path).add([record(0, 0), record(0, 1)])
    torn = path.read_bytes()[:-5]
    path.write_bytes(torn)
    assert list(read_episodes(path)) == [record(0, 0)]
    assert path.read_bytes() == torn


def test_a_table_without_the_newer_columns_gets_them(tmp_path: Path) -> None:
    """Those of version 1 know nothing of evaluation and actions; what they do know stays as it is."""
    path = tmp_path / "pong.csv"
    line = "0,1,2,3200,20000,280.0,280.25,1e-05,407"
    path.write_text(f"{','.join(HEADER[:9])}\n{line}\n")
    old = EpisodeRecord(0, 1, 2, 3200, 20000, 280.0, 280.25, 1e-05, 407)
    assert EpisodeTable(path).add([old, record(0, 2, evaluation=True)]) == [record(0, 2, evaluation=True)]
    assert path.read_text().splitlines()[:2] == [",".join(HEADER), f"{line},0,,,,0"]
    assert list(EpisodeTable(path).read()) == [
        old._replace(action_counts=[], rooms=[]),
        record(0, 2, evaluation=True),
    ]


def test_torn_header_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "pong.csv"
    path.write_bytes(b"actor,seq")
    EpisodeTable(path)
    assert rows(path) == [list(HEADER)]


def test_other_tables_are_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "pong.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is no table of episodes"):
        EpisodeTable(path)
    assert path.read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize("line", ["0,1,2", "0,0,0,0,0,1,1,1,long,0,", "0,0,0,0,0,1,1,1,9,0,1 x"])
def test_unreadable_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pong.csv"
    path.write_text(",".join(HEADER) + f"\n{line}\n")
    with pytest.raises(ValueError, match=r"Line 2 of .*pong\.csv is not an episode"):
        EpisodeTable(path)
