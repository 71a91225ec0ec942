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
# # Watch an agent, and the returns that it expects
#
# An IQN agent that ships with this repository plays Ms. Pac-Man. IQN estimates not the mean of the return alone but its quantiles: how wide
# they lie says how unsure the outcome is.

# %%
import sys
from pathlib import Path

import ale_py
import gymnasium
import matplotlib.pyplot as plt
import numpy as np
from gymnasium.wrappers import AtariPreprocessing

REPOSITORY = Path.cwd().parents[1]  # this file is in docs/notebooks
sys.path.append(str(REPOSITORY))
from rainbow_iqn_apex import load_policy

# %% [markdown]
# ## The game
#
# As the agent was trained: all 18 actions, sticky ones, grey frames of 84 x 84 pixels.

# %%
gymnasium.register_envs(ale_py)
game = gymnasium.make("ALE/MsPacman-v5", frameskip=1, full_action_space=True, repeat_action_probability=0.25)
names = game.unwrapped.get_action_meanings()
env = AtariPreprocessing(game, noop_max=0, frame_skip=4, screen_size=84)

# %% [markdown]
# ## The agent plays
#
# `look` gives the action, the value of each action, and the quantiles of its return.

# %%
policy = load_policy(REPOSITORY / "results" / "kept" / "ms_pacman" / "ms_pacman_250127.pth", seed=1)
observation, _ = env.reset(seed=1)
frames, looks, rewards = [], [], []
for _ in range(300):
    look = policy.look(observation)
    frames.append(observation)
    looks.append(look)
    observation, reward, terminated, truncated, _ = env.step(look.action)
    rewards.append(reward)
    if terminated or truncated:
        break
print(f"{sum(rewards):,.0f} points in {len(frames)} steps")

# %% [markdown]
# ## What it saw and expected
#
# Below each frame the quantiles of the action that it took, and of the action that it thought worst.

# %%
shown = np.linspace(60, len(frames) - 1, 4).astype(int)
figure, axes = plt.subplots(2, len(shown), figsize=(14, 6), height_ratios=(2, 1))
for column, step in enumerate(shown):
    look, (top, bottom) = looks[step], axes[:, column]
    top.imshow(frames[step], cmap="gray")
    top.set(title=f"step {step}: {names[look.action].lower()}", xticks=[], yticks=[])
    worst = int(look.values.argmin())
    for action, colour in ((look.action, "tab:blue"), (worst, "tab:red")):
        quantiles = np.sort(look.quantiles[:, action])
        bottom.plot(quantiles, np.arange(len(quantiles)), ".", color=colour, label=names[action].lower())
        bottom.axvline(look.values[action], color=colour, alpha=0.5)
    bottom.set(xlabel="return", yticks=[])
    bottom.legend(fontsize=8)
plt.show()

# %% [markdown]
# ## How sure it was
#
# The value of the best action over time, and the band between its 10 % and 90 % quantiles.

# %%
best = np.array([look.quantiles[:, look.values.argmax()] for look in looks])  # [steps, K]
low, middle, high = np.quantile(best, (0.1, 0.5, 0.9), axis=1)
plt.figure(figsize=(14, 3))
plt.fill_between(range(len(best)), low, high, alpha=0.25)
plt.plot(middle)
plt.bar(range(len(rewards)), np.sign(rewards), color="tab:red", label="a reward")
plt.legend()
plt.xlabel("step")
plt.show()
assert sum(rewards) > 0 and (high > low).all()
