"""What a run owns in Redis: settings, counters, leases, weights, episodes, status, and pushed experience.

In: what processes publish. Out: what the others read. Every process runs here, a lease's renewal in a thread
of its own.
"""
