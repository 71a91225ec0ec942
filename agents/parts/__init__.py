"""Parts that several agents are made of: targets, exploration, rollouts, intrinsic rewards, batches.

In come tensors and plain numbers, out go tensors; nothing here knows Redis, environments or flags.
Everything runs in the thread that updates or acts, except `batches.Staging`, which belongs to the sampler's
thread.
"""
