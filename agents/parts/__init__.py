"""What several agents are made of: exploration, distributions, targets, V-trace, running statistics."""
