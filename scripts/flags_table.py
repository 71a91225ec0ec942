"""Write the table of flags in docs/flags.md from args.py, where every parameter and its sentence live.

python -m scripts.flags_table           write the table
python -m scripts.flags_table --check   write nothing; exit code 1 when the table is out of date
"""

from __future__ import annotations

import argparse
import sys
import typing
from pathlib import Path

from pydantic.fields import FieldInfo

from args import GROUPS, Args

FLAGS = Path(__file__).resolve().parent.parent / "docs" / "flags.md"
BEGIN = "<!-- flags: written by `python -m scripts.flags_table`; edit the settings.py of a room instead -->"
END = "<!-- end of flags -->"
SHARED_MARK = " ●"


def render() -> str:
    """One table per group of args.py; flags that actors adopt from the learner carry SHARED_MARK."""
    shared = Args().shared().keys()
    return "\n\n".join(_section(group, frozenset(shared)) for group in GROUPS)


def updated(document: str) -> str:
    """`document` with the present table between its two markers.

    Raises ValueError when a marker is missing or stands twice.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + after:
        raise ValueError(f"docs/flags.md must hold {BEGIN!r} and after it {END!r}, once each.")
    return f"{before}{BEGIN}\n\n{render()}\n\n{END}{after}"


def _section(group: type, shared: frozenset[str]) -> str:
    title = (group.__doc__ or "").rstrip(".")
    rows = [_row(name, Args.model_fields[name], name in shared) for name in group.__annotations__]
    return "\n".join([f"**{title}**", "", "| Flag | Type | Default | Meaning |", "|---|---|---|---|", *rows])


def _row(name: str, field: FieldInfo, is_shared: bool) -> str:
    flag = f"`--{name.replace('_', '-')}`{SHARED_MARK if is_shared else ''}"
    default = "" if field.default in (None, "") else f"`{field.default}`"
    cells = (flag, _type_name(field.annotation), default, _escaped(field.description or ""))
    return f"| {' | '.join(cells)} |"


def _type_name(annotation: object) -> str:
    """`int` of int and of `int | None`."""
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    kind = kinds[0] if kinds else annotation
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _escaped(sentence: str) -> str:
    return sentence.replace("<", "&lt;").replace(">", "&gt;").replace("|", "\\|").replace("*", "\\*")


def main() -> int:
    """Write or compare; 0 when the table is current."""
    parser = argparse.ArgumentParser(description="Write the table of flags in docs/flags.md.")
    parser.add_argument("--check", action="store_true", help="compare only")
    check: bool = parser.parse_args().check
    document = FLAGS.read_text(encoding="utf-8")
    current = updated(document)
    if not check:
        FLAGS.write_text(current, encoding="utf-8")
    elif document != current:
        print(
            "The table of docs/flags.md is out of date: run python -m scripts.flags_table.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
