"""The agents by name, and which actions they choose. Imports nothing, so that --help can list them.

agents/registry.py has the classes; a test compares both.
"""

from __future__ import annotations

DISCRETE = ("iqn", "rainbow", "dqn", "double_dqn", "reinforce", "a2c", "ppo", "ppo_rnd")
CONTINUOUS = ("naf", "reinforce", "a2c", "ppo")
"""DISCRETE and CONTINUOUS name the agents that learn; random, which does not, plays both kinds of actions."""
ALL = (*DISCRETE, "naf", "random")

NEEDS_DISCRETE = (
    "This agent needs discrete actions, and this environment's are continuous:"
    f" --agent {', '.join(CONTINUOUS)} fit."
)
NEEDS_CONTINUOUS = (
    "This agent needs continuous actions, and this environment's are discrete:"
    f" --agent {', '.join(DISCRETE)} fit."
)


def no_such(name: str) -> str:
    """The sentence on an agent that does not exist."""
    return f"There is no agent '{name}': choose one of {', '.join(ALL)}."


def misfit(agent: str, discrete: bool) -> str:
    """What a run of that agent with such actions would end with, as a sentence; "" where it can play."""
    if agent not in ALL:
        return no_such(agent)
    if agent == "random" or agent in (DISCRETE if discrete else CONTINUOUS):
        return ""
    return NEEDS_CONTINUOUS if discrete else NEEDS_DISCRETE
