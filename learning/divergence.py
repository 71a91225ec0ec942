"""Training that has come apart, told by whoever sees it first: the learner, or an actor of its policy."""


class Diverged(ValueError):
    """Numbers are no longer finite: nothing can be learned any more."""
