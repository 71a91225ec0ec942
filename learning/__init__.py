"""The learner's loop: draw a batch, update, publish weights, return priorities.

In: batches, which the source's thread draws ahead. Out: weights and priorities to Redis; scores, plots and
snapshots to disk. The main thread updates the agent and writes files.
"""
