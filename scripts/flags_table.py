"""Write the table of flags in docs/flags.md from args.py, where every parameter and its sentence live.

python -m scripts.flags_table
"""

from __future__ import annotations

from pathlib import Path

from pydantic.fields import FieldInfo

from args import Args
from parameters.declare import plain_type

FLAGS = Path(__file__).resolve().parent.parent / "docs" / "flags.md"
BEGIN = "<!-- flags: written by `python -m scripts.flags_table`; edit the settings.py of a room instead -->"
END = "<!-- end of flags -->"
SHARED_MARK = " ●"


def render() -> str:
    """One table per group of args.py; flags that actors adopt from the learner carry SHARED_MARK."""
    shared = Args().shared().keys()
    return "\n\n".join(_section(group, frozenset(shared)) for group in Args.__bases__)


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
    cells = (flag, plain_type(field.annotation).__name__, default, _escaped(field.description or ""))
    return f"| {' | '.join(cells)} |"


def _escaped(sentence: str) -> str:
    return sentence.replace("<", "&lt;").replace(">", "&gt;").replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    FLAGS.write_text(updated(FLAGS.read_text(encoding="utf-8")), encoding="utf-8")
