"""DQN of Stable-Baselines3 on CartPole, in the shape of specs/classic/cartpole_dqn.yaml.

Run by an interpreter that has Stable-Baselines3, and nothing of ours: python benchmarks/small/sb3.py STEPS
"""

import sys

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env

torch.set_num_threads(1)
environments = make_vec_env("CartPole-v1", n_envs=4, seed=1)
agent = DQN(
    "MlpPolicy",
    environments,
    batch_size=64,
    buffer_size=40_000,
    learning_starts=1_000,
    train_freq=1,  # a vector step of 4
    gradient_steps=2,
    target_update_interval=100,
    learning_rate=5e-4,
    policy_kwargs={"net_arch": [128, 128]},
    device="cpu",
    seed=1,
)
agent.learn(int(sys.argv[1]))
