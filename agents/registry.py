"""Which agents there are.

A new one is a file, a network, flags in agents/settings.py, a line here, and its name in agents/names.py. A
flag that adds a part to it stands in SWITCHES (wiring/checks.py) too, so that agents without that part refuse
it. Where it values every action, its method `estimates` says how.
"""

from __future__ import annotations

from agents.base import Agent, AgentError, ReplayAgent, RolloutAgent
from agents.dqn import DoubleDqnAgent, DqnAgent
from agents.iqn import IqnAgent
from agents.naf import NafAgent
from agents.names import no_such
from agents.policy_gradient import A2cAgent, ReinforceAgent
from agents.ppo import PpoAgent
from agents.ppo_rnd import PpoRndAgent
from agents.rainbow import RainbowAgent
from agents.random_agent import RandomAgent
from own_code.code import OwnCode, imported_code, names_code

AGENTS: dict[str, type[Agent]] = {
    "iqn": IqnAgent,
    "rainbow": RainbowAgent,
    "dqn": DqnAgent,
    "double_dqn": DoubleDqnAgent,
    "naf": NafAgent,
    "ppo_rnd": PpoRndAgent,
    "reinforce": ReinforceAgent,
    "a2c": A2cAgent,
    "ppo": PpoAgent,
    "random": RandomAgent,
}


def agent_type(name: str) -> type[Agent]:
    """The agent of that name, or the user's own that was imported; AgentError listing the known names."""
    code = imported_code(name)
    if code is not None:
        return _own_type(code)
    if names_code(name):
        raise AgentError(
            f"The agent {name} is not known in this process: code is run only where it is asked for, so give"
            f" --agent path/to/{name} to this program too."
        )
    if name not in AGENTS:
        raise AgentError(no_such(name))
    return AGENTS[name]


def has_replay(name: str) -> bool:
    """Whether the agent of that name learns from a replay; else from rollouts. Raises AgentError."""
    return issubclass(agent_type(name), ReplayAgent)


def _own_type(code: OwnCode) -> type[Agent]:
    kind = code.thing
    if not (isinstance(kind, type) and issubclass(kind, ReplayAgent | RolloutAgent)):
        raise AgentError(
            f"{code.name} is no class that derives from ReplayAgent or RolloutAgent (agents/base.py)."
        )
    return kind
