"""Matches of one evaluation: against whom --against says, and of a whole pool for --ratings.

In come parameters and the policy that is evaluated; out go files in the results folder, and printed tables.
"""
