"""YAML files of names and values: what is refused, and what merges may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from parameters.declare import UserError
from parameters.spec_file import read_document, read_text


def written(folder: Path, text: str) -> Path:
    path = folder / "some.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("agent: dqn\nagent: a2c", "at line 2, column 1: agent stands here and in line 1: keep one of them."),
        ("a: {b: 1, b: 1}", "at line 1, column 11: b stands here and in line 1: keep one of them."),
        ("T-max: 1\nT_max: 2", "at line 2, column 1: T_max is the same name as T-max in line 1: keep one"),
        (".a: &a {b: 1}\n<<: *a\n<<: *a", "line 3, column 1: << stands here and in line 2: name all in one"),
        ("x:\n  1: a\n  '1': b", "line 2, column 3: to YAML the name 1 is no text: write it in quotes, '1'."),
        ("on: 1", "to YAML the name on is no text: write it in quotes, 'on'."),
        ("? [a]\n: 1", "at line 1, column 3: a name must be text, and this one is a list or a mapping."),
        ("a: [", "at line 1, column 5: while parsing a flow node, expected the node content"),
        ("a: *b", "at line 1, column 4: found undefined alias 'b'."),
        ("a: 1\n---\nb: 2", "at line 2, column 1: expected a single document in the stream, but"),
        ("a: 1\nb: \a", "at line 2: special characters are not allowed."),
        ("a: " + "[" * 5000, "it nests too deep."),
        ("a: 2001-99-99", "month must be in 1..12."),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_its_place(text: str, sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError) as caught:
        read_document(path)
    assert str(caught.value).startswith(f"The spec {path} cannot be read")
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none.yaml cannot be read: No such file or directory\.$"):
        read_document(tmp_path / "none.yaml")
    (tmp_path / "some.yaml").write_bytes(b"a: \xff")
    with pytest.raises(UserError, match="some.yaml cannot be read: it is not UTF-8 text"):
        read_document(tmp_path / "some.yaml")


def test_what_comes_by_a_merge_may_be_overridden(tmp_path: Path) -> None:
    """Also under the same name with an underscore; a merge's own merge is read anew each time."""
    text = """
a: &a {T_max: 1, lr: 1}
b: &b {T-max: 2, seed: 2}
c: &c {<<: [*a, *b], lr: 3}
own: {<<: [*a, *b], T-max: 3}
first: {<<: [*b, *a]}
again: {<<: *c, seed: 4}
"""
    document = read_document(written(tmp_path, text))
    assert document["own"] == {"T-max": 3, "lr": 1, "seed": 2}
    assert document["first"] == {"T-max": 2, "lr": 1, "seed": 2}
    assert document["again"] == {"T_max": 1, "lr": 3, "seed": 4}


def test_an_editors_mark_before_the_text_is_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text("a: 1", encoding="utf-8-sig")
    assert (read_text(path), read_document(path)) == ("a: 1", {"a": 1})
