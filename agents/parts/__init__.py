"""Parts that several agents are made of: base classes, exploration, distributions, resets, random networks.

In come tensors and plain numbers, out go tensors; nothing here knows Redis, environments or flags. Base
classes: `learning` (a network, its weights and state), and on it `off_policy` here and `agents.on_policy`.
Everything runs in the thread that updates or acts, except `devices.Staging`, which belongs to the thread that
fetches batches: `source`, or a follower's `rows`.
"""
