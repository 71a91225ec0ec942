"""The learner's loop.

In: batches, which the source's thread draws. Out: weights and priorities to Redis; scores, plots and
snapshots to disk. The main thread updates the agent and writes files.
"""
