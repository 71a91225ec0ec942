"""The learner's side of the prioritised replay: ring, sum tree, batches.

In: chunks that arrived in Redis, and losses of batches. Out: batches by priority, and priorities for Redis.
Only the learner's sampler thread (or the serial loop) runs here.
"""
