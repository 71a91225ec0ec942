"""Pages and pictures: one html file that needs no network, or a PNG, of numbers that others have gathered.

In: plain numbers, and the tables of a run. Out: files, and plotly's figures for the live page. Everything
runs in the caller's thread.
"""
