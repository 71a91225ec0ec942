"""The agents by name, and which actions they choose. Imports nothing, so that --help can list them.

agents/registry.py has the classes; a test compares both.
"""

from __future__ import annotations

DISCRETE = ("iqn", "rainbow", "dqn", "double_dqn", "reinforce", "a2c", "ppo", "ppo_rnd")
CONTINUOUS = ("naf", "reinforce", "a2c", "ppo")
"""Without random, which does not learn."""
