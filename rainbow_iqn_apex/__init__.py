"""What a notebook or script of your own needs, under one name that can be imported in any folder.

>>> from rainbow_iqn_apex import load_policy, open_replay, read_run, train
>>> train(game="CartPole-v1", agent="dqn", T_max=20000)     # starts and stops all processes
>>> policy = load_policy("results/last_model_CartPole-v1_20000.pth")
>>> action = policy(observation)

This package alone can be imported after `pip install -e .`, or with the repository at the end of sys.path.
The repository's modules are below it, as `rainbow_iqn_apex.agents.base`: they hide no module of yours that is
called `agents`, `envs` or `models`, and none of yours hides them (own_code/folder_imports.py).
docs/notebook.md says more.
"""

import importlib
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
__path__.append(str(_ROOT))

_imports = importlib.import_module(f"{__name__}.own_code.folder_imports")
sys.meta_path.insert(0, _imports.FolderFinder(__name__, _ROOT))

from rainbow_iqn_apex.policies import LoadedPolicy, Look, load_policy
from rainbow_iqn_apex.replays import OpenReplay, Transitions, open_replay
from rainbow_iqn_apex.runs import RunFailed, RunTables, read_run, train

__all__ = [
    "LoadedPolicy",
    "Look",
    "OpenReplay",
    "RunFailed",
    "RunTables",
    "Transitions",
    "load_policy",
    "open_replay",
    "read_run",
    "train",
]
