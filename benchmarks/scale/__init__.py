"""How far a run goes: actors on one Redis, shards, weights to many actors."""
