"""The loops: actor, learner, sampler, evaluator, supervisor, and what they keep on disk."""
