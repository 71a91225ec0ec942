"""Several learners of one run, each a process of torchrun's; a run of one learner imports none of it.

The first (rank 0, the leader) is the learner that every run has: it holds the lease, draws, publishes, saves.
It tells the others (followers) which rows of each batch are theirs, and all take the same step down the mean
of their gradients. In: the leader's draws and orders. Out: gradients, and losses for the leader's priorities.

Threads: in the leader those of learning/, of which `source` also sends draws. In a follower the main one
updates the agent, and `rows` fetches what it will learn from.
"""
