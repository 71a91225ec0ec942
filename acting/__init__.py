"""The actor's loop.

In: weights and the run's progress, from Redis. Out: experience, episodes, status, to Redis. One thread plays;
weights may be fetched in a second one.
"""
