"""The one switch between compiled loops and their plain twins: `--kernels`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

log = logging.getLogger(__name__)

KINDS = ("compiled", "plain")
_kind = "compiled"
_missing = ""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled_as(loop: Callable[..., Any]) -> Callable[[FunctionT], FunctionT]:
    """The compiled `loop`, which takes and returns the same, runs while compiled loops are in use."""

    def choose(plain: FunctionT) -> FunctionT:
        @wraps(plain)
        def operation(*arguments: Any) -> Any:
            return (plain if _missing or _kind == "plain" else loop)(*arguments)

        return cast(FunctionT, operation)

    return choose


def use(kind: str) -> None:
    """From now on operations of this process run as compiled loops, or all by their plain twins.

    Args:
        kind: One of KINDS.
    """
    global _kind
    _kind = kind


def compiled_in_use() -> bool:
    """Whether compiled loops are asked for, and can be made."""
    return _kind == "compiled" and not _missing


def can_compile() -> bool:
    """Whether nothing that compiled loops need is missing."""
    return not _missing


def only_plain(missing: object) -> None:
    """Compiled loops cannot be made in this process, for lack of what is `missing`: it is logged once."""
    global _missing
    if not _missing:
        log.warning("Plain operations compute instead of compiled loops, which are faster: %s", missing)
    _missing = _missing or str(missing)
