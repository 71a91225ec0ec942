"""A still picture of an html page, taken by whatever browser is installed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from reporting.atomic import write_atomically

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT_S = 120.0


class StillError(RuntimeError):
    """The browser made no picture; the message is one sentence."""


def find_browser() -> str | None:
    """Path of the first of `BROWSERS` that is installed."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def write_still(browser: str, page: Path, picture: Path, width: int, height: int) -> None:
    """Opens `page` in a headless browser and writes its first `height` pixels as a PNG.

    Raises:
      StillError: the browser could not do it.
    """
    with tempfile.TemporaryDirectory(prefix="still-") as folder:
        taken = Path(folder) / "still.png"
        command = [
            browser,
            "--headless=new",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # root has no sandbox
            "--enable-unsafe-swiftshader",  # 3-D without a graphics card
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
            f"--window-size={width},{height}",
            f"--screenshot={taken}",
            page.resolve().as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise StillError(f"{browser} could not take a picture of {page}: {error}.") from error
        if not taken.is_file():
            raise StillError(f"{browser} took no picture of {page}.")
        write_atomically(picture, taken.read_bytes())
