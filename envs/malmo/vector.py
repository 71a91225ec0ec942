"""N missions at once, each on its own Minecraft client."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from envs.config import EnvConfig, EnvError
from envs.malmo.clients import Clients, parse_addresses
from envs.malmo.game import MalmoGame
from envs.malmo.limits import Limits
from envs.seeding import checked_seeds
from envs.solo import SoloVector

_LIMITS = Limits()


class MalmoVector(SoloVector):
    """N environments on the clients of `config.malmo_ports`, which other actors may share.

    Raises:
        EnvError: there are fewer clients than environments, or their names are wrong.
    """

    def __init__(
        self, config: EnvConfig, mission: int, seeds: Sequence[int], limits: Limits = _LIMITS
    ) -> None:
        addresses = parse_addresses(config.malmo_ports)
        if len(addresses) < len(checked_seeds(seeds, len(seeds))):
            raise EnvError(
                f"{len(seeds)} environments at once need as many Minecraft clients, "
                f"but --malmo-ports names {config.malmo_ports} only."
            )
        clients = Clients(addresses, limits)
        games = [MalmoGame(config, mission, clients, limits) for _ in seeds]
        self._threads = ThreadPoolExecutor(len(games), "malmo")
        super().__init__(config, games, seeds, self._threads.map)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the missions."""
        super().close_extras(**kwargs)
        self._threads.shutdown()
