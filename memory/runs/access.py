"""Who may do what with a run: the users that `python -m memory.runs acl RUN` prints, for a server's ACL.

Scripts run with the rights of their caller, so an actor can always spoil what its own pushes write to.
"""

from __future__ import annotations

import re

READS = "settings", "weights", "weights_version", "pool", "pool_members", "lease:learner"
PUSHES = "counters", "chunks", "priorities", "arrivals", "rollouts", "episodes", "status"
"""Keys of a run that an actor's pushes, episodes and status go to; those in READS it only reads."""

_LEARNER = (
    "@read +@write +@scripting +@transaction +@connection -@dangerous -@sortedset -@geo -@hyperloglog +info"
    " -script +script|load"
)
"""Rights of a learner, without kinds of values that no run has: Redis 7.0 lets PFMERGE make a foreign key."""
_ACTOR = "ping +hello +auth +info +get +hget +hmget +hset +hdel +xadd +rpush +evalsha"
_VIEWER = "ping +hello +auth +get +mget +hget +hmget +hgetall +hrandfield +exists +scan +xread +memory|usage"

HOW_TO = """\
# For the server's configuration file; or for ACL SETUSER, without the word `user`. A password goes behind
# `on`: `#` and the hash that `printf %s 'the password' | sha256sum` prints (redis_conf/README.md)."""


def acl_lines(prefix: str, suffix: str = "", redis_7: bool = True) -> list[str]:
    """Lines of a server's configuration, one for each role; each still needs a password.

    Args:
        prefix: What the keys of these users begin with, as a pattern.
        suffix: Of the users' names.
        redis_7: Whether the server tells reading a key from writing it, and grants rights for some keys
            alone. Where it does not, an actor can overwrite every key of its run.
    """
    read, lease = "%R~" if redis_7 else "~", f"~{prefix}lease:actor:*"
    keys = [f"{read}{prefix}{key}" for key in READS] + [f"~{prefix}{key}" for key in PUSHES]
    may_set = f"({lease} -@all +set)" if redis_7 else "+set"
    functions = " -function" if redis_7 else ""
    return [
        f"user learner{suffix} on ~{prefix}* -@all +{_LEARNER}{functions}",
        f"user actor{suffix} on {' '.join(keys)} {lease} -@all +{_ACTOR} {may_set}",
        f"user viewer{suffix} on {read}{prefix}* -@all +{_VIEWER}",
    ]


def acl_of(run: str, redis_7: bool) -> str:
    """Users for one run, and what to do with them. Raises ValueError where an ACL cannot name it."""
    if re.search(r"[\s\"'(){}]", run) or not run.isprintable():
        raise ValueError(f"An ACL cannot name the run {run!r}: it has spaces, quotes or brackets.")
    pattern = re.sub(r"([\[\]*?\\])", r"\\\1", run)
    return "\n".join([HOW_TO, *acl_lines(f"{{{pattern}:0}}:", f"-{run}", redis_7)])
