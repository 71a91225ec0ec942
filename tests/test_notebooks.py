"""The notebooks in docs/notebooks, executed from their first cell to their last as Jupyter would."""

from __future__ import annotations

import jupytext
import pytest
from nbclient import NotebookClient

from tests.processes import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.py"))
CELL_S = 300


def test_there_are_notebooks() -> None:
    assert {"watch_an_agent", "inside_the_replay", "compare_two_settings", "own_agent"} == set(NOTEBOOKS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_shows_something(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each asserts itself, in its last cell, that what it shows is so."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = jupytext.read(FOLDER / f"{name}.py")
    place = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=CELL_S, kernel_name="python3", resources=place).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs), "a picture"
    assert not any(output.output_type == "error" for output in outputs)
