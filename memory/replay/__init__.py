"""The learner's side of the prioritised replay: ring, sum tree, batches.

In: chunks, losses. Out: batches by priority, new priorities. Once it is loaded, only the `source` thread (or
the serial loop) changes the replay; the main thread reads its size; a follower's `rows` runs RowReader.
"""
