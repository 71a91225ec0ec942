"""What a learner keeps on disk: snapshots, written whole or not at all, in a folder that one learner holds.

In: the state of the agent, of the source of batches and, with --serial, of the actor. Out: the files of one
game in --path-to-results; at a start, the newest sound snapshot. The learner's main thread runs here.
"""
