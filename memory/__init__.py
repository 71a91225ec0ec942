"""All that passes through Redis: experience, priorities, weights, counters, leases."""
