"""The actor's loop: step the environments, write experience, push it to Redis.

In: weights and the run's counters, from Redis. Out: experience, episodes and status, to Redis.

Threads: the main one plays; with --seat-runs each `seat i` does. `weights` fetches weights meanwhile.
`environment` says where the environment is silent. `lease …` renews the lease, `signals` hears requests to
stop while native code runs, and `loops` share compiled loops, where PyTorch has several threads.
"""
