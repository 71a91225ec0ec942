"""How long anything may take before a Minecraft client counts as crashed, or the user is asked for help."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """All in seconds."""

    connect: float = 10.0  # until a connection stands; also how long a first client is looked for
    reply: float = 20.0  # for one whole message; Minecraft answers within 3, if without a picture
    start: float = 180.0  # from a mission's message to its first picture (MalmoEnv's own limit)
    picture: float = 60.0  # for a picture within a mission
    retry: float = 0.1  # pause before Minecraft, which was not ready, is asked once more
    rest: float = 1.0  # for which a crashed client is left alone, doubled with each crash on end …
    longest_rest: float = 60.0  # … up to this
    patience: float = 600.0  # how long an episode waits for a client, once one was met
    poll: float = 0.05  # pause before the clients' locks are tried once more
