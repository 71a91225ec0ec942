"""Builds the parts of a process from its parameters; shared by the launchers, which parse, build and run."""

from wiring.actor import build_actor, build_lone_actor
from wiring.endings import say_plainly, sentences_for_errors
from wiring.learner import Learning, build_learner
from wiring.restored import Restored, games_to_play, restore_agent
from wiring.setting import (
    Setting,
    build_agent,
    canonical,
    check_agent_fits,
    check_divided,
    connect_redis,
    results_folder,
    set_up_torch,
    setting_of,
)
from wiring.sources import check_store

__all__ = [
    "Learning",
    "Restored",
    "Setting",
    "build_actor",
    "build_agent",
    "build_lone_actor",
    "build_learner",
    "canonical",
    "check_agent_fits",
    "check_divided",
    "check_store",
    "connect_redis",
    "games_to_play",
    "restore_agent",
    "results_folder",
    "say_plainly",
    "sentences_for_errors",
    "set_up_torch",
    "setting_of",
]
