"""`--gpu-replay`: the frames of the replay once more, in the memory of the learner's device.

In: chunks that arrived in Redis, and draws. Out: batches whose states were gathered on the device, so that
only numbers of rows, actions, returns and weights are sent there. Redis stays the store: the mirror is filled
from it at a start, and a batch with a chunk that the mirror lacks comes from Redis, as without it.

Once it is filled, only the `source` thread (or the serial loop) changes the mirror and gathers from it; the
learner's main thread takes the batches over. A run without the flag imports none of it.
"""
