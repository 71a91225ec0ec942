"""A run on several machines, placed by Ray: launch_cluster.py and what it starts on the cluster.

In: the command line of a run. Out: its launchers as processes on the cluster's machines, and their lines.
Three kinds of processes work here: the program in the user's terminal, the keeper, which supervises, and on
each machine a host per launcher. Ray is imported here and in the lab's search, by no learner or actor.
"""
