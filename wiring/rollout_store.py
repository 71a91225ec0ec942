"""The learner's end of the list of rollouts."""

from __future__ import annotations

from agents.base import RolloutAgent
from agents.registry import agent_type
from args import Args
from learning.rollout_source import RolloutSource, RolloutSourceConfig
from learning.snapshot import Snapshot
from memory.chunks.chunk import ChunkLimits
from memory.rollouts.blocks import RolloutStore
from memory.rollouts.limits import RolloutLimits
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.run import OpenedRun
from memory.server.connection import Client, Patience
from wiring.setting import Setting
from wiring.store import Store


class Rollouts(Store):
    """Whole rollouts of all environments of an actor, learned from once."""

    kept = ("steps_learned",)

    def check(self, args: Args) -> None:
        """Everything fits: nothing is filled first, and batches are cut from whatever was played."""

    def sentence(self, setting: Setting) -> str:
        """Few are ever there."""
        outstanding = setting.args.max_policy_lag + 1
        return f"Redis holds no more than {outstanding} rollouts of each actor."

    def source(
        self,
        setting: Setting,
        client: Client,
        keys: Keys,
        opened: OpenedRun,
        snapshot: Snapshot | None,
        patience: Patience,
    ) -> RolloutSource:
        """A rollout of every actor, side by side."""
        updates, steps = (snapshot["updates"], snapshot["steps_learned"]) if snapshot else (0, 0)
        return RolloutSource(
            setting.args.select(RolloutSourceConfig),
            patience(lambda: RolloutStore(client, keys, opened.epoch, _limits(setting))),
            updates,
            steps,
            read_counters(client, keys),
        )


def _limits(setting: Setting) -> RolloutLimits:
    args, told, kind = setting.args, setting.description, agent_type(setting.args.agent)
    assert issubclass(kind, RolloutAgent)
    one = ChunkLimits(told.frame_shape, told.frame_dtype, told.num_actions, told.action_low, told.action_high)
    return RolloutLimits(args.rollout_length, args.history_length, len(kind.value_heads), one)
