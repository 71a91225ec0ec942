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
# # Inside the replay while it runs
#
# An IQN agent learns to catch a falling pixel, and this notebook looks into its prioritised replay meanwhile: it only reads, beside the learner.

# %%
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

sys.path.append(str(Path.cwd().parents[1]))  # this file is in docs/notebooks
from rainbow_iqn_apex import open_replay, train

# %% [markdown]
# ## The run
#
# It starts in the background, with a Redis server of its own, and ends by itself.

# %%
folder = Path(tempfile.mkdtemp())
server = str(folder / "redis.sock")
lines: list[str] = []
background = ThreadPoolExecutor(1)
run = background.submit(
    train, "probe:catch", "iqn", folder / "results", lines.append, host_redis=server, T_max=6000
)

# %% [markdown]
# ## Looks into the replay
#
# Each look takes the priorities of all transitions, and a batch as the learner would draw it.

# %%
looks = []
while not run.done():
    time.sleep(1)
    if not Path(server).exists():
        continue  # Redis has not begun yet, or has ended
    try:
        replay = open_replay("probe:catch", server)
        looks.append((len(replay), replay.priorities, replay.sample(8)))
    except (ValueError, OSError):
        pass  # the learner has not begun yet, or the replay is empty
tables = run.result()
print(f"{len(looks)} looks; the last one saw {looks[-1][0]:,} transitions")

# %% [markdown]
# ## Priorities become smaller as the agent learns
#
# The priority of a transition is its loss, to the power alpha.

# %%
for name, (count, priorities, _) in (("first look", looks[0]), ("last look", looks[-1])):
    plt.hist(priorities, bins=50, density=True, alpha=0.6, label=f"{name}: {count:,} transitions")
plt.xlabel("priority")
plt.legend()
plt.show()

# %% [markdown]
# ## Transitions of the last batch
#
# The newest frame of each state, the action (0 left, 1 stay, 2 right), the 3-step return and the priority.

# %%
batch = looks[-1][2]
figure, axes = plt.subplots(1, 8, figsize=(14, 3))
for axis, state, action, r_t, priority in zip(
    axes, batch.s_tm1, batch.a_tm1, batch.r_t, batch.priority, strict=True
):
    axis.imshow(state[-1], cmap="gray")
    axis.set(title=f"a {action}, r {r_t:.2f}\np {priority:.2f}", xticks=[], yticks=[])
plt.show()

# %% [markdown]
# ## And it has learned

# %%
scores = np.array(tables.episodes["score_saber_points"], float)
plt.plot(np.convolve(scores, np.ones(50) / 50, "valid"))
plt.xlabel("episode")
plt.ylabel("mean score of 50 episodes")
plt.show()
print(
    f"The first 50 episodes scored {scores[:50].mean():.2f}, the last 50 {scores[-50:].mean():.2f}; 1 is the best."
)
assert scores[-50:].mean() > scores[:50].mean() + 0.5
