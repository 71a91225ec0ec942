"""All that passes through Redis: experience, priorities, weights, counters, leases.

`chunks` makes n-step transitions of an actor's steps, and packs them; `runs` pushes them with their first
priorities, and has what else a run owns; `replay` draws batches by priority, with importance weights;
`rollouts` is for on-policy agents; `server` is the connection. No torch here: weights are bytes.
"""
