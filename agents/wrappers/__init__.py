"""Agents around other agents: intrinsic rewards for any replay agent, one agent for each kind of game.

In come an agent, or what builds one, and the batches that it learns from; each acts and learns as the agents
within do, and adds what is its own. Everything runs in the thread that updates or acts.
"""
