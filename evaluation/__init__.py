"""Scores of a fixed agent: fixed episodes, films, advantage surfaces.

In: a snapshot and a list of seeds. Out: scores and pictures. One thread.
"""
