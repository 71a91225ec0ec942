"""Names in the lab's folders: those of its own files, and what an experiment may be called."""

from __future__ import annotations

import re

LOCK, PROCESS, LOG = "lab.lock", "lab.json", "lab.log"
"""Files that the lab keeps beside the experiments: who holds the folder, and what a detached lab says."""
RUNS = "runs"
"""Folder of the lab below the benchmark's table."""
CSV, SESSIONS = "benchmark.csv", "sessions.csv"
TABLES = (CSV, SESSIONS, "benchmark.json", "benchmark.html", "README.md")
"""Files of the benchmark's table; beside them is a png for each game."""
RESERVED = (LOCK, PROCESS, LOG, RUNS, *TABLES)
FORM = "begin with a letter, a digit or '_', and go on with these, '.' and '-'"


def why_not(name: str) -> str:
    """What is wrong with the name of an experiment, whose folder is called so; "" where nothing is."""
    if name in RESERVED:
        return f"a file or folder of the lab's own is called {name}; choose another name."
    if not re.fullmatch(r"\w[\w.-]*", name):
        return f"a folder will be called so: {FORM}."
    return ""
