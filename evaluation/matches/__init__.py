"""Games of two policies against each other: who won, and how strong all of a pool are.

In come policies and an environment's parameters; out go results, `matches_<game>.json` and films. Everything
runs in the thread that calls.
"""
