"""How the process behind a DoomGame is started.

VizDoom (1.3.2) starts it as a plain child, which has three faults that its own settings cannot mend:

* A terminal's Ctrl-C reaches it too, and a game that is gone breaks an actor that was about to stop in order.
* It makes a folder _vizdoom wherever it was started.
* It lives on for ever when the program that plays is killed.

So a script starts it: it ignores those signals, stands in a temporary folder, and dies with its parent
(Linux; setpriv is a part of util-linux).
"""

import shlex
import tempfile
from functools import cache
from pathlib import Path

_SCRIPT = """#!/bin/sh
trap '' INT TERM
cd {folder} || exit
exec setpriv --pdeathsig KILL {program} "$@"
"""


@cache
def starter(program: Path) -> Path:
    """Returns the script that starts `program`; it is removed when this process ends."""
    folder = Path(_folder().name)
    script = folder / "start"
    script.write_text(_SCRIPT.format(folder=shlex.quote(str(folder)), program=shlex.quote(str(program))))
    script.chmod(0o700)
    return script


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="vizdoom-", ignore_cleanup_errors=True)
