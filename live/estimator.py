"""Values of states by the weights that a run publishes: its agent, built from the settings in Redis.

An agent of the user's own is not built, since that would run code which Redis names.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from acting.links.weights import WeightsReader, checked_tensors
from agents.base import Agent, AgentError, Problem
from agents.wrappers.kinds import part_of
from args import Args, UserError, checked_args
from envs.config import EnvError, EnvFailure
from envs.legal import without_forbidden
from live.reading import ServerRun
from live.sight import SeenChunk
from memory.runs.keys import Keys
from memory.runs.weights import WeightsError
from memory.server.connection import Client
from own_code.code import names_code
from wiring.setting import build_agent, setting_of

ANY_GAME = "probe:catch"
"""Game that stands in the settings in place of one that is the user's own: the agent does not depend on it.
"""

REST = 300
"""Pause between two fetches of weights, in multiples of the processor time that the last one took: 0.3 % of a
core. Weights of Rainbow-IQN on Atari take 50 ms, so they are up to 15 s old.
"""


class NoEstimate(ValueError):
    """There are no values to show; the message is one sentence that says why."""


class Estimator:
    """Values by a run in one epoch. The first estimate builds the agent; new weights come after a pause."""

    def __init__(self, client: Client, name: str, run: ServerRun) -> None:
        self.epoch = run.info.epoch
        self._name, self._settings = name, dict(run.info.settings)
        self._weights = WeightsReader(client, Keys(name))
        self._agent: Agent | None = None
        self._masked = False
        self._fetch_at = 0.0

    def quantiles(self, seen: SeenChunk, num_actions: int | None) -> NDArray[np.float32]:
        """Quantiles of the return of each action in each state.

        Args:
            seen: a chunk of M transitions.
            num_actions: A, as episodes counted them; None where none did.

        Returns:
            [M, K, A] K estimates (one where the agent knows the mean alone) for each of A actions; NaN where
            the rules forbid the action.

        Raises:
            NoEstimate: there are none; the message says why.
        """
        if seen.actions.ndim > 1:
            raise NoEstimate("Actions are continuous: there is no value of each.")
        torch.set_num_threads(1)
        try:
            self._agent = self._agent or self._built(seen, num_actions)
            self._bring_up_to_date(self._agent)
            if self._weights.seen is None:
                raise NoEstimate("The learner has published no weights yet.")
            with torch.inference_mode():
                found = self._agent.estimates(torch.from_numpy(seen.states))  # [M, K, A]
        except (AgentError, UserError, EnvError, EnvFailure, WeightsError) as error:
            raise NoEstimate(str(error)) from error
        except (RuntimeError, KeyError) as error:  # weights of another network
            raise NoEstimate(f"The published weights do not fit the run's settings: {error}.") from error
        values = np.asarray(found.cpu().numpy(), np.float32)
        return without_forbidden(values, seen.states) if self._masked else values

    def _bring_up_to_date(self, agent: Agent) -> None:
        """Give it the published weights, if that is due."""
        if time.monotonic() < self._fetch_at:
            return
        began = time.thread_time()
        if (weights := self._weights.poll()) is not None:
            first = str(self._settings.get("game")).split(",")[0]  # of which the page shows chunks
            agent.load_acting_weights(part_of(checked_tensors(weights.payload), first))
        self._fetch_at = time.monotonic() + REST * (time.thread_time() - began)

    def _built(self, seen: SeenChunk, num_actions: int | None) -> Agent:
        settings: dict[str, Any] = dict(self._settings)
        if names_code(str(settings.get("agent"))):
            raise NoEstimate(
                f"Values need the code of {settings['agent']}, and this page runs no code that Redis names."
            )
        is_own = any(map(_is_own, str(settings.get("game")).split(",")))
        if is_own:
            settings["game"] = ANY_GAME
        args = checked_args({"run": self._name, "disable_cuda": True}).adopt(settings)
        problem = (_problem_of_own if is_own else _problem)(args, seen, num_actions)
        self._masked = problem.masked
        return build_agent(args, problem, learning=False)


def _is_own(game: str) -> bool:
    """Whether to describe it would be to run what Redis names: a user's code, or a program."""
    return names_code(game) or game.startswith("unity:")


def _problem(args: Args, seen: SeenChunk, num_actions: int | None) -> Problem:
    """As where a snapshot is played, with the sizes of chunks and episodes, which --env-args may change."""
    found = setting_of(args.playing(args.games[0])).problem
    shape, dtype = seen.states.shape[1:], str(seen.states.dtype)
    actions = found.num_actions if num_actions is None else num_actions
    return replace(found, observation_shape=shape, observation_dtype=dtype, num_actions=actions)


def _problem_of_own(args: Args, seen: SeenChunk, num_actions: int | None) -> Problem:
    """What chunks and flags tell of an environment that is not started; games by turns always have rules."""
    if num_actions is None:
        raise NoEstimate("The number of actions is known after the first episode.")
    shape, dtype = seen.states.shape[1:], str(seen.states.dtype)
    masked = args.info_masks or args.discount < 0
    return Problem(shape, dtype, num_actions, None, None, masked=masked)
