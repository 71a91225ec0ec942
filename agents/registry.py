"""Which agents there are. A new one is a file, a network and a line here."""

from __future__ import annotations

from agents.base import Agent, AgentError
from agents.chance import RandomAgent
from agents.iqn import IqnAgent
from agents.naf import NafAgent
from agents.ppo_rnd import PpoRndAgent
from agents.rainbow import RainbowAgent

AGENTS: dict[str, type[Agent]] = {
    "iqn": IqnAgent,
    "rainbow": RainbowAgent,
    "naf": NafAgent,
    "ppo_rnd": PpoRndAgent,
    "random": RandomAgent,
}


def agent_type(name: str) -> type[Agent]:
    """The agent of that name; AgentError listing the known names."""
    if name not in AGENTS:
        raise AgentError(f"There is no agent '{name}': choose one of {', '.join(AGENTS)}.")
    return AGENTS[name]
