"""A page in the browser of every run on a Redis server, and of those in --path-to-results.

    python live_page.py

It reads Redis and the folders, and changes nothing there. It listens on this machine alone; with --page-host
at another address, and then it asks for a token (the environment variable PAGE_TOKEN, or a new one that is
printed).
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import begin_program

    begin_program()

    from args import parse_args
    from parameters.usage import LIVE_PAGE

    ARGS = parse_args(page=LIVE_PAGE)

import sys
from pathlib import Path

from args import Args, UserError, fail
from memory.server.connection import RedisConfig, RedisRefused
from supervision.process import Stop, set_up_logging


def main(args: Args) -> int:
    """Serve until Ctrl-C or SIGTERM; exit code."""
    set_up_logging()
    stopped = Stop().on_signals()
    try:
        from live.server import serve

        serve(args.select(RedisConfig), Path(args.path_to_results), args.page_host, args.page_port, stopped)
    except ModuleNotFoundError as error:
        fail(UserError(f"The live page needs {error.name}: `EXTRAS=page bash scripts/setup.sh` gets it."))
    except (UserError, RedisRefused) as error:
        fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(ARGS))
