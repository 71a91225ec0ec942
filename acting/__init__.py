"""The actor's loop: step the environments, write experience, push it to Redis.

In: weights and the run's counters, from Redis. Out: experience, episodes and status, to Redis. One thread
plays; a second one may fetch weights meanwhile.
"""
