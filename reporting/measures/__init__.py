"""What scores are worth: windows of a run's last ones, normalised scores, fitness, and intervals.

In: raw scores of episodes, and the references in reporting/data/. Out: plain numbers. Everything runs in the
caller's thread.
"""
