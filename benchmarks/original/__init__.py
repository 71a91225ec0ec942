"""Baselines: a replay of keys per transition, an agent and a loop as Toromanoff et al. 2019 did; BTR."""
