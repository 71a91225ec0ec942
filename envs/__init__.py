"""Vector environments: ALE games under SABER, Gymnasium's, a user's own, mazes, Doom, Minecraft, tiny probes.

>>> from envs.registry import make_env
>>> from envs.seeding import environment_seeds
>>> env = make_env(config, environment_seeds(seed=1, actor=0, start=0, count=16))

In comes an EnvConfig (the game and its settings) and one seed per environment; out go frames, rewards, and
flags, step by step, in the thread that built it. The rules:

* An observation is one frame per environment, [N, *frame], uint8 (pixels) or float32 (other numbers). The
  caller stacks frames. A reward is the game's own: the caller clips it. Arrays that were returned are never
  written to again.
* Every environment has its own seed, and the same seeds and actions give the same episodes, whatever the
  neighbours do. `reset()` starts all environments from the seeds given at construction;
  `reset(seed=[…], options={"reset_mask": bool [N]})` restarts the marked ones at once, with one seed for each
  in their order, and cancels an autoreset that was pending there.
* Autoreset is Gymnasium's NEXT_STEP. The step that ends an episode returns its last frame, with terminated
  (the task is over: its value is 0) or truncated (a time limit: the value is bootstrapped). The next step
  ignores that environment's action and returns the next episode's first frame, with reward 0 and both flags
  False. That step is no transition.
* In a game with rooms, infos["room"] of `reset` and `step` is int64 [N]: the room of every frame returned.
* Where the loss of a life ends an episode (ALE, --terminal-on-life-loss), infos["life_lost"] of `step` is
  bool [N]: the episode ended, and its game goes on.
* Where something outside of an episode can end it, infos["interrupted"] of `step` is bool [N]: it was
  truncated, and an evaluation plays it again.
* Actions are checked before they reach the environment (ale-py 0.12.1 hangs on one that is out of range).
* An environment whose runs may be resumed exactly returns all that later steps depend on from `state_dict`.
* A package that not everybody has is imported when an environment is built, and not to describe one; FAMILY's
  `needs` tells early that it is missing. Whatever the user may do wrong is an EnvError of one sentence.

A game belongs to a family (Atari, mazes, Gymnasium …). A family is a module of envs/ with one object FAMILY:
functions that recognise a game's name, describe its observations and actions, and build it. Its own packages
come with the first name that is looked up. To add a family,

1. write envs/<family>.py, or envs/<family>/__init__.py where it takes several files;
2. derive the N environments of one actor from SeededVectorEnv: its `_restart` and `_advance` do the work, its
   `reset` and `step` check seeds, masks and actions first. A game that only knows itself needs less: give N
   of them to envs/solo.py;
3. make FAMILY from five functions, and add the module's name to FAMILIES in envs/registry.py;
4. add a game to GAMES in tests/envs/test_contract.py, which checks all the rules. `Catch` in
   envs/small/probe.py is a complete example of 65 lines.
"""
