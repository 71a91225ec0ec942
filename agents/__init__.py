"""Agents: one file per algorithm, one registry, pure loss functions."""

from agents.base import (
    Acting,
    ActingNoise,
    Agent,
    AgentError,
    Curious,
    Problem,
    ReplayAgent,
    RolloutActing,
    RolloutAgent,
    Update,
)
from agents.registry import AGENTS, agent_type

__all__ = [
    "AGENTS",
    "Acting",
    "ActingNoise",
    "Agent",
    "AgentError",
    "Curious",
    "Problem",
    "ReplayAgent",
    "RolloutActing",
    "RolloutAgent",
    "Update",
    "agent_type",
]
