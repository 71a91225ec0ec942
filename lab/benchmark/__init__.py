"""The command benchmark: many experiments, several sessions at a time, one table beside published scores.

In: a file of experiments, the folders of finished sessions, and published.csv. Out: tables in markdown, and
graphs. The lab's main thread reads and writes; each session is waited for in a thread of its own.
"""
