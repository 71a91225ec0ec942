"""Experience as bytes.

In: what environments and actors did, step by step. Out: packed chunks, and from them whole transitions again.
An actor packs in its own thread; the learner unpacks in its `source` thread and one helper beside it.
"""
