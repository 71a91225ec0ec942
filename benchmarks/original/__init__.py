"""Baselines that work as Toromanoff et al. 2019 did: a replay of keys per transition, an agent, a loop."""
