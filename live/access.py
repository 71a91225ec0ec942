"""Who may see the page: this machine alone, or whoever has its token."""

from __future__ import annotations

import hmac
import re

from flask import Flask, Response, abort, request

WORD = "token"
OWN_NAMES = "localhost", "127.0.0.1", "[::1]"


def guard(server: Flask, token: str | None, host: str) -> None:
    """Refuse who does not have `token`, as ?token= once and as a cookie from then on.

    Without a token only this machine's own names, and that of `host` at which it listens, are answered to: a
    page of somebody else's, open in a browser here, reaches a server on loopback under a name of its own.
    """
    names = {*OWN_NAMES, host.lower(), f"[{host.lower()}]"}

    @server.before_request
    def check() -> None:
        if token is None:
            asked = request.host.lower()
            if asked.rpartition(":")[0] not in names and asked not in names:
                abort(403, "This page answers to localhost alone.")
        elif not (_is(request.cookies.get(_cookie()), token) or _is(request.args.get(WORD), token)):
            abort(401, "This page asks for the token that was printed when it started: add ?token=...")

    @server.after_request
    def remember(response: Response) -> Response:
        if token is not None and _is(request.args.get(WORD), token):
            response.set_cookie(_cookie(), token, httponly=True, samesite="Strict")
        return response


def _cookie() -> str:
    """Its name: a browser sends the cookies of a host to all its ports."""
    port = re.search(r":(\d+)$", request.host)
    return f"page_token_{port[1]}" if port else "page_token"


def _is(given: str | None, token: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), token.encode())
