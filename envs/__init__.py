"""Vector environments: ALE games under SABER, any Gymnasium environment, mazes, Doom, Minecraft, tiny probes.

>>> from envs.registry import make_env
>>> from envs.seeding import environment_seeds
>>> env = make_env(config, environment_seeds(seed=1, actor=0, start=0, count=16))

In comes an EnvConfig (the game and its settings) and one seed per environment; out go frames, rewards, and
flags, step by step, in the thread that built it. Every environment keeps to the rules in envs/contract.py,
which also says how to add one. envs/registry.py imports no emulator: a family's own packages come with the
first name that is looked up.
"""
