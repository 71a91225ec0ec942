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
# # Compare two settings, with intervals
#
# Does a return of three steps learn faster than one of one step? Two runs of DQN answer nothing, since seeds differ more than settings: here are
# three seeds of each, and the 95 % interval of their mean.

# %%
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

sys.path.append(str(Path.cwd().parents[1]))  # this file is in docs/notebooks
from rainbow_iqn_apex import read_run, train

# %% [markdown]
# ## Six short runs
#
# `serial=True` makes each repeatable: one process plays and learns by turns.

# %%
folder = Path(tempfile.mkdtemp())
SETTINGS, SEEDS = {"1 step": 1, "3 steps": 3}, (1, 2, 3)
for name, steps in SETTINGS.items():
    for seed in SEEDS:
        results = folder / f"{steps}_{seed}"
        train(
            "probe:catch",
            "dqn",
            results,
            lambda line: None,
            multi_step=steps,
            seed=seed,
            T_max=3000,
            serial=True,
            threads=1,
            host_redis=str(folder / "redis.sock"),
        )
        print(name, "seed", seed, "done")

# %% [markdown]
# ## Curves on one grid
#
# `read_run` reads what a run left; a curve is the mean of the last 50 episodes.

# %%
grid = np.linspace(500, 3000, 60)


def curve(results):
    """Mean score of the last 50 episodes at each step of the grid."""
    episodes = read_run(results).episodes
    steps = np.array(episodes["actor_agent_steps"], float)
    scores = np.array(episodes["score_saber_points"], float)
    means = np.array([scores[max(end - 50, 0) : end].mean() for end in range(1, len(scores) + 1)])
    return np.interp(grid, steps, means)


curves = {
    name: np.stack([curve(folder / f"{steps}_{seed}") for seed in SEEDS]) for name, steps in SETTINGS.items()
}

# %% [markdown]
# ## Mean and interval
#
# A bootstrap over seeds: how far the mean would move, had other seeds been drawn.

# %%
generator = np.random.default_rng(0)
for name, values in curves.items():
    drawn = values[generator.integers(len(values), size=(2000, len(values)))].mean(1)
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    plt.plot(grid, values.mean(0), label=name)
    plt.fill_between(grid, low, high, alpha=0.2)
plt.axhline(1, color="gray", linestyle=":")
plt.xlabel("agent steps")
plt.ylabel("score")
plt.legend()
plt.show()
for name, values in curves.items():
    print(
        f"{name}: {values[:, -1].mean():.2f} at the end, seeds {np.round(values[:, -1], 2)}; random play: -0.58"
    )
assert max(values[:, -1].mean() for values in curves.values()) > 0
