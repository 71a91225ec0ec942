"""All that passes through Redis: experience, priorities, weights, counters, leases.

No torch here: weights are bytes.
"""
