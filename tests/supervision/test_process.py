from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import resource, numpy as np
from supervision.process import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(5_000_000)  # 40 MB: more than malloc keeps by itself
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
keep_freed_memory()
faults()
print(first, faults())
"""


def test_freed_memory_is_used_again() -> None:
    """Otherwise every large array would be handed over by the kernel page by page."""
    said = subprocess.check_output([sys.executable, "-c", PROGRAM], cwd=ROOT, text=True)
    before, after = map(int, said.split())
    assert before > 100 and after < before / 10
