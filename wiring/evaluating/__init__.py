"""Evaluations: what is evaluated, and against whom --against says; of a whole pool for --ratings.

In come parameters; out go policies, files in the results folder, and printed tables.
"""
