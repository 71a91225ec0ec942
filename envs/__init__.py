"""Vector environments: ALE games under SABER, any Gymnasium environment, and tiny probes.

>>> env = make_env(config, environment_seeds(seed=1, actor=0, start=0, count=16))

Every environment keeps to the contract in envs/contract.py.
"""

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.contract import SeededVectorEnv
from envs.registry import canonical_game, describe_env, make_env
from envs.seeding import environment_seeds

__all__ = [
    "EnvConfig",
    "EnvDescription",
    "EnvError",
    "SeededVectorEnv",
    "canonical_game",
    "describe_env",
    "environment_seeds",
    "make_env",
]
