"""Malmo's missions: the contract of envs/contract.py, the arenas, the names, and what a user may do wrong.

There is no Minecraft here: tests/envs/malmo_server.py stands in for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import pytest

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.malmo.missions import FLOOR, draw_arena, mission_init
from envs.registry import canonical_game, describe_env, make_env, make_playback
from tests.envs import malmo_play, test_contract
from tests.envs.malmo_play import SMALL
from tests.envs.malmo_server import Server
from tests.envs.malmo_world import World

MakeConfig = Callable[..., EnvConfig]
CLIENTS = 8  # the contract's tests play so many environments at once

locks_of_our_own = malmo_play.locks_of_our_own
test_shapes_and_dtypes_are_as_described = test_contract.test_shapes_and_dtypes_are_as_described
test_same_seeds = test_contract.test_same_seeds_give_the_same_episodes_and_neighbours_differ
test_neighbours = test_contract.test_an_environment_does_not_depend_on_its_neighbours
test_a_full_reset = test_contract.test_a_full_reset_starts_again_from_the_same_seeds
test_next_step_autoreset = test_contract.test_next_step_autoreset
test_an_ended_environment_ignores_its_action = test_contract.test_an_ended_environment_ignores_its_action
test_a_partial_reset = test_contract.test_a_partial_reset_restarts_the_marked_ones_alone
test_a_pending_autoreset = test_contract.test_a_partial_reset_cancels_a_pending_autoreset
test_returned_arrays_are_not_written_to_again = test_contract.test_returned_arrays_are_not_written_to_again
test_wrong_actions_are_refused = test_contract.test_wrong_actions_are_refused
test_wrong_resets_are_refused = test_contract.test_wrong_resets_are_refused
test_seeds_of_any_actor_are_accepted = test_contract.test_seeds_of_any_actor_are_accepted


@pytest.fixture(scope="module")
def ports() -> Iterator[str]:
    servers = [Server() for _ in range(CLIENTS)]
    yield ",".join(f"127.0.0.1:{server.port}" for server in servers)
    for server in servers:
        server.stop()


@pytest.fixture
def config(make_config: MakeConfig, ports: str) -> EnvConfig:
    return make_config("malmo:1", malmo_ports=ports, **SMALL)


def drawn(make_config: MakeConfig, mission: int, seed: int, **changes: object) -> World:
    config = make_config(f"malmo:{mission}", **changes)
    return World(mission_init(config, draw_arena(mission, seed), "experiment"))


def paces_to_gold(world: World) -> int | None:
    """Returns how many blocks the agent has to walk until it stands before the gold."""
    start = (int(world.x // 1), int(world.z // 1))
    paces, ahead = {start: 0}, deque([start])
    while ahead:
        x, z = ahead.popleft()
        for beside in ((x + 1, z), (x - 1, z), (x, z + 1), (x, z - 1)):
            block = world.blocks.at(beside[0], world.y, beside[1])
            if block == "gold_block":
                return paces[x, z]
            if block == "air" and beside not in paces:
                paces[beside] = paces[x, z] + 1
                ahead.append(beside)
    return None


def test_names() -> None:
    names = ["malmo", "malmo:1", "malmo:2", "malmo:3"]
    assert [canonical_game(name) for name in names] == ["malmo:1", *names[1:]]


def test_unknown_missions_are_refused() -> None:
    with pytest.raises(EnvError, match="malmo:3"):
        canonical_game("malmo:4")


def test_description_needs_no_minecraft(make_config: MakeConfig) -> None:
    assert describe_env(make_config("malmo", malmo_ports="1")) == EnvDescription(
        (120, 160, 3), "uint8", None, (-1.0, -1.0), (1.0, 1.0), 4, None, 4, mirrored_action=(-1.0, 1.0)
    )


@pytest.mark.parametrize("mission", [1, 2, 3])
def test_the_gold_can_be_reached(mission: int, make_config: MakeConfig) -> None:
    distances = []
    for seed in range(12):
        world = drawn(make_config, mission, seed)
        paces = paces_to_gold(world)
        assert paces is not None
        assert world.y == FLOOR + 1
        assert world.blocks.at(world.x, FLOOR, world.z) == "stone"
        distances.append(paces)
    assert min(distances) >= (1, 2, 12)[mission - 1]
    assert max(distances) <= (11, 25, 45)[mission - 1]
    assert len(set(distances)) > 3


def test_the_arena_is_closed(make_config: MakeConfig) -> None:
    """Without the gold, the walk from the start comes to an end: the agent cannot get out."""
    for seed in range(10):
        world = drawn(make_config, 3, seed)
        types = world.blocks.types
        types[types == "gold_block"] = "air"
        assert paces_to_gold(world) is None


def test_arenas_differ_and_repeat(make_config: MakeConfig) -> None:
    arenas = [draw_arena(3, seed) for seed in range(20)]
    assert arenas == [draw_arena(3, seed) for seed in range(20)]
    assert len({arena.yaw for arena in arenas}) > 10
    assert len({(arena.start, arena.goal) for arena in arenas}) == 20
    assert len({tuple(arena.cuboids) for arena in arenas}) == 20


def test_settings_reach_the_mission(make_config: MakeConfig) -> None:
    world = drawn(
        make_config, 2, 0,
        overclock_rate=10.0, onscreen_rendering=True, episode_time_sec=12.5, frame_width=84, frame_height=48,
    )  # fmt: skip
    assert (world.ms_per_tick, world.offscreen, world.seconds) == (5, "false", 12.5)
    assert (world.width, world.height) == (84, 48)
    assert drawn(make_config, 2, 0).offscreen == "true"
    assert drawn(make_config, 2, 0, overclock_rate=100.0).ms_per_tick == 1


@pytest.mark.parametrize(
    ("ports", "sentence"),
    [
        ("minecraft", "not 'minecraft'"),
        ("70000", "not '70000'"),
        ("host:", "not 'host:'"),
        ("9000,localhost:9000", "one of them twice"),
    ],
)
def test_wrong_clients_are_refused(ports: str, sentence: str, make_config: MakeConfig) -> None:
    with pytest.raises(EnvError, match=sentence):
        make_env(make_config("malmo", malmo_ports=ports), [0])


def test_each_environment_needs_a_client(make_config: MakeConfig) -> None:
    with pytest.raises(EnvError, match="3 environments at once need as many Minecraft clients"):
        make_env(make_config("malmo", malmo_ports="9000,9001"), [0, 1, 2])


def test_minecraft_cannot_be_filmed(make_config: MakeConfig) -> None:
    with pytest.raises(EnvError, match="--onscreen-rendering"):
        make_playback(make_config("malmo"), 0)
