"""Who gets the page: this machine alone, or whoever has the token."""

from __future__ import annotations

import pytest
from flask import Flask
from werkzeug.test import Client

from live.access import guard
from live.server import address_of
from memory.server.connection import is_loopback


def answers(token: str | None, host: str = "127.0.0.1") -> Flask:
    server = Flask("page")
    server.add_url_rule("/", "page", lambda: "the page")
    guard(server, token, host)
    return server


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
    ]
    + [("10.0.0.3", False), ("a-machine.org", False)],
)
def test_what_is_this_machine_alone(host: str, own: bool) -> None:
    assert is_loopback(host) == own


@pytest.mark.parametrize(
    ("host", "code"),
    [("localhost:8050", 200), ("127.0.0.1:8050", 200), ("[::1]:8050", 200), ("LOCALHOST", 200)]
    + [("evil.example:8050", 403), ("localhost.evil.example", 403)],
)
def test_on_loopback_no_other_name_is_answered_to(host: str, code: int) -> None:
    assert answers(None).test_client().get("/", headers={"Host": host}).status_code == code


def test_another_loopback_address_is_answered_to_where_it_is_listened_at() -> None:
    for host, name in (("127.0.0.2", "127.0.0.2:8050"), ("::1", "[::1]:8050")):
        assert answers(None, host).test_client().get("/", headers={"Host": name}).status_code == 200


@pytest.mark.parametrize("token", ["a+b/c=&d", "a token"])
def test_the_address_that_is_printed_opens_the_page(token: str) -> None:
    address = address_of("0.0.0.0", 8050, token)
    assert answers(token, "0.0.0.0").test_client().get(address).status_code == 200


def test_elsewhere_the_token_is_asked_for_and_then_remembered() -> None:
    client = answers("a secret").test_client()
    assert client.get("/").status_code == 401
    assert client.get("/?token=another").status_code == 401
    assert client.get("/", headers={"Cookie": "page_token=wrong"}).status_code == 401
    opened = client.get("/?token=a+secret")
    assert opened.status_code == 200 and "HttpOnly" in opened.headers["Set-Cookie"]
    assert client.get("/").status_code == 200, "by the cookie"
    assert answers("a secret").test_client().get("/").status_code == 401


def test_pages_at_two_ports_of_a_host_do_not_forget_each_other() -> None:
    """A browser sends a host's cookies to all its ports."""
    pages = {"8050": answers("one"), "8051": answers("another")}
    browser = Client(lambda environ, start: pages[environ["SERVER_PORT"]](environ, start))
    for port, words in (("8050", "?token=one"), ("8051", "?token=another"), ("8050", ""), ("8051", "")):
        assert browser.get(f"/{words}", base_url=f"http://host:{port}").status_code == 200
