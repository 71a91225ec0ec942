"""Agents: one file per algorithm, one registry, pure loss functions; `parts` and `on_policy` are shared.

In: states to act in, batches or rollouts to learn from. Out: actions with the estimates behind them, losses,
weights. An actor's thread acts, a learner's main thread updates.
"""
