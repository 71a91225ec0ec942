"""Processes of a run: their start, restart and end, the Redis server beside them, the live view.

In: commands to run. Out: their exit codes, and a view of the run on the terminal. The main thread of
start_learning.py runs here.
"""
