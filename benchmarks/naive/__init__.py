"""The baselines: the seed's manner of doing the same work, written plainly by us and never tuned."""
