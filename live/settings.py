"""Parameters of the live page."""

from __future__ import annotations

from parameters.declare import Programs, Settings, parameter


class PageSettings(Settings):
    """Live page (live_page.py)."""

    programs = Programs.TERMINAL | Programs.PAGE

    page: bool = parameter(
        False,
        "start_learning.py: serve the live page of the server's runs too (EXTRAS=page bash scripts/setup.sh)",
        programs=Programs.TERMINAL,
    )
    page_host: str = parameter(
        "127.0.0.1", "Address on which the live page listens; any but this machine's own asks for a token"
    )
    page_port: int = parameter(8050, "TCP port of the live page; 0 = any that is free", ge=0, le=65535)
