"""The bounded list of rollouts for on-policy agents.

In: blocks of steps from actors. Out: whole rollouts [T, B] for the learner.
Actors push in their own thread; the learner reads in its source's thread.
"""
