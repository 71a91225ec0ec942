"""Serves the page until it is stopped."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import secrets
import threading
from pathlib import Path
from urllib.parse import quote

from werkzeug.serving import make_server

from live.access import guard
from live.pace import RefreshPace
from live.page.app import page_app
from live.watch import Watch
from memory.server.connection import RedisConfig, is_loopback
from parameters.declare import UserError

log = logging.getLogger(__name__)

LOOK_EVERY_S, SHARE = 5.0, 0.002
"""Shortest time (seconds) between two looks at the runs, which go on while nobody looks at the page, and the
largest share of a core that they may take.
"""
TOKEN_VARIABLE = "PAGE_TOKEN"
"""Environment variable with the token; where it is empty a new one is made at each start."""


def address_of(host: str, port: int, token: str | None) -> str:
    """What a browser opens."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"?token={quote(token, safe='')}" if token else "")


def serve(config: RedisConfig, results: Path, host: str, port: int, stopped: threading.Event) -> None:
    """Serve, and look at the runs meanwhile, until `stopped`. UserError where the port cannot be had."""
    watch = Watch(config, results)
    app = page_app(watch)
    token = None if is_loopback(host) else os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)
    guard(app.server, token, host)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it says two sentences of its own
            server = make_server(host, port, app.server, threaded=True)
    except (OSError, SystemExit) as error:
        raise UserError(
            f"The page cannot listen at {host}:{port}: check --page-host and --page-port."
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="page", daemon=True)
    thread.start()
    log.info("The live page: %s", address_of(host, server.server_port, token))
    pace = RefreshPace(SHARE, LOOK_EVERY_S)
    while not stopped.wait(pace.rest()):
        with watch.lock:
            watch.look()
    server.shutdown()
