# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # An agent of your own
#
# DQN with a soft maximum: the target averages the values of all actions, weighted by a softmax. One file outside the repository holds what is new;
# a field of its config becomes a flag. [own_agent](../tutorials/own_agent.md) has a larger one.

# %%
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

sys.path.append(str(Path.cwd().parents[1]))  # this file is in docs/notebooks
from rainbow_iqn_apex import load_policy, train

# %%
folder = Path(tempfile.mkdtemp())
my_agent = folder / "my_agent.py"
my_agent.write_text('''
from dataclasses import dataclass, field

import torch

from rainbow_iqn_apex.agents.dqn import DqnAgent, DqnConfig
from rainbow_iqn_apex.agents.losses import huber_loss, of_action


@dataclass(frozen=True, kw_only=True)
class SoftDqnConfig(DqnConfig):
    """Its new field becomes the flag --temperature."""

    temperature: float = field(default=0.05, metadata={"help": "of the softmax over values; 0 would be DQN"})


class SoftDqn(DqnAgent):
    """Targets r + discount * sum_a softmax(q / temperature)_a q_a."""

    config_type = SoftDqnConfig

    def _losses(self, batch):
        with torch.no_grad():
            q_t = self.target.network(batch.s_t)  # [B, A]
            weights = (q_t / self.config.temperature).softmax(1)
            targets = batch.r_t + batch.discount_t * (weights * q_t).sum(1)
        q = of_action(self.online(batch.s_tm1), batch.a_tm1)  # [B]
        return huber_loss(targets - q, self.config.kappa), q
''')

# %% [markdown]
# ## It learns
#
# `train` starts the processes, and stops them at the end or when the cell is interrupted.

# %%
tables = train(
    "probe:catch",
    f"{my_agent}:SoftDqn",
    folder / "results",
    lambda line: print(line) if "Saved" in line else None,
    host_redis=str(folder / "redis.sock"),
    spec=str(Path.cwd().parents[1] / "specs" / "classic" / "catch_dqn.yaml"),
    temperature=0.02,
    T_max=18000,
)
scores = np.array(tables.episodes["score_saber_points"], float)
plt.plot(np.convolve(scores, np.ones(50) / 50, "valid"))
plt.xlabel("episode")
plt.ylabel("mean score of 50 episodes")
plt.show()

# %% [markdown]
# ## It plays
#
# A snapshot only names its agent, so the file is named again.

# %%
snapshot = max((folder / "results").glob("last_model_*.pth"), key=lambda path: path.stat().st_mtime)
policy = load_policy(snapshot, agent=f"{my_agent}:SoftDqn")
played = policy.play(episodes=20)
print(f"20 episodes scored {played.mean():.2f}; 1 is the best, random play -0.58.")
assert played.mean() > 0.5
