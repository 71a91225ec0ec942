"""The learner's loop: draw a batch, update, publish weights, return priorities.

In: batches, which the source's thread draws ahead. Out: weights and priorities to Redis; scores, plots and
snapshots to disk.

Threads: the main one updates the agent and writes files. `weights` publishes. `source` reads arrivals, draws
batches and writes priorities. `unpack`, of memory/replay/, opens chunks of later batches. `lease …` renews
the lease. `signals` hears requests to stop while native code runs. `tracker` sends scalars, with --track.
`loops` share compiled loops, where PyTorch has several threads. With --serial the main thread also publishes,
plays, and does the source's work between steps.
"""
