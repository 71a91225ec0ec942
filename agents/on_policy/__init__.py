"""What agents that learn from rollouts share: their base class, the rollout's states and masks, PPO's losses.

In comes a rollout of consecutive steps (memory/rollouts/), out go losses and weights. Acting runs in the
actor's thread, learning in the learner's main thread.
"""
