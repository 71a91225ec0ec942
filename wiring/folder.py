"""The folder of results, looked at before anything is played."""

from __future__ import annotations

import tempfile
from pathlib import Path

from args import Args, UserError


def results_folder(args: Args) -> Path:
    """--path-to-results, made where it is missing. Raises UserError where nothing can be written to it."""
    folder = Path(args.path_to_results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        reason = f"({error.strerror}): check --path-to-results."
        raise UserError(f"Nothing can be written to {folder} {reason}") from error
