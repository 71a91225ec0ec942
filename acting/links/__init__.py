"""An actor's side of its run: what it pushes and reports, and whose weights it plays with.

In: packets, finished episodes and status of the actor; weights and counters from Redis, or snapshots from a
folder. Out: calls to Redis, which wait as long as the learner or the server is away. The actor's thread runs
here; a second one may fetch weights.
"""
