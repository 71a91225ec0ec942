"""Malmo's missions: rooms of blocks in a winding row, and the message that starts a mission in them.

Like Malmo's classroom missions: rooms of 7 x 7 blocks, joined by doorways; the agent starts in the first, a
block of gold stands in the last. Coordinates are Minecraft's, in blocks: x to the east, y up, z to the south.

The message's form is that of Malmo 0.37 (Johnson et al. 2016, IJCAI; Schemas/MissionInit.xsd). All its ports
are 0: with MalmoEnv's protocol everything passes through one connection. A mission ends with the touch of the
gold, which has the only reward there is, or with its time.
"""

from typing import NamedTuple

import numpy as np

from envs.config import EnvConfig

ROOMS = {1: 1, 2: 2, 3: 4}
"""Rooms of each mission: the gold is in the same room, one room away, three rooms away."""

FLOOR = 226  # y of the flat world's uppermost layer; the agent stands above it
GOAL = "gold_block"
GOAL_REWARD = 1.0
_SIDE = 7  # inner side of a room
_PITCH = _SIDE + 1  # from a room to the next; the wall between them is shared
_HEIGHT = 4  # of walls; a room has no ceiling, so that daylight falls in
_GOAL_HEIGHT = 2  # as tall as the agent
_DOOR = 2  # width
_SAFE_DISTANCE = 3  # between the start and the gold of mission 1
_WALLS = ("sandstone", "cobblestone", "brick_block", "clay")  # drawn for each room
_GROUND = "stone"
_MS_PER_TICK = 50  # Minecraft's own

Room = tuple[int, int]  # place of a room on the grid of rooms
Block = tuple[int, int]  # x, z of a column of blocks
Cuboid = tuple[int, int, int, int, int, int, str]
"""x, y, z of two corners, which belong to it, and the kind of its blocks."""


class Arena(NamedTuple):
    """The blocks of one episode, and where the agent and the gold stand."""

    cuboids: list[Cuboid]  # drawn in this order
    start: Block
    yaw: int  # degrees; 0 looks south, 90 west
    goal: Block


def draw_arena(mission: int, seed: int) -> Arena:
    """Returns the arena of the mission's episode with this seed."""
    generator = np.random.default_rng(seed)
    rooms = _winding_row(ROOMS[mission], generator)
    start, goal = _place(rooms[0], generator), _place(rooms[-1], generator)
    while max(abs(start[0] - goal[0]), abs(start[1] - goal[1])) < _SAFE_DISTANCE:
        start, goal = _place(rooms[0], generator), _place(rooms[-1], generator)
    walls = [cuboid for room in rooms for cuboid in _room(room, str(generator.choice(_WALLS)))]
    doors = [_doorway(room, following, generator) for room, following in zip(rooms, rooms[1:], strict=False)]
    gold = _block(goal, goal, GOAL, _GOAL_HEIGHT)
    return Arena([*_empty_field(), *walls, *doors, gold], start, int(generator.integers(360)), goal)


def mission_init(config: EnvConfig, arena: Arena, experiment: str) -> bytes:
    """Returns the message <MissionInit> of one episode; `experiment` is a name that no other episode has."""
    x, z = arena.start
    return _MISSION_INIT.format(
        ms_per_tick=max(1, round(_MS_PER_TICK / config.overclock_rate)),
        offscreen=str(not config.onscreen_rendering).lower(),
        cuboids="".join(_CUBOID.format(*cuboid) for cuboid in arena.cuboids),
        time_limit_ms=round(1000 * config.episode_time_sec),
        placement=f'x="{x + 0.5}" y="{FLOOR + 1}" z="{z + 0.5}" yaw="{arena.yaw}" pitch="0"',
        width=config.frame_width,
        height=config.frame_height,
        reward=GOAL_REWARD,
        goal=GOAL,
        experiment=experiment,
        agent_ports="".join(f"<Agent{name}Port>0</Agent{name}Port>" for name in _PORTS),
    ).encode()


def _winding_row(count: int, generator: np.random.Generator) -> list[Room]:
    """Each room is next to the one before, none on another; up to four never run into a dead end."""
    rooms = [(0, 0)]
    while len(rooms) < count:
        x, z = rooms[-1]
        neighbours = [(x + 1, z), (x - 1, z), (x, z + 1), (x, z - 1)]
        free = [room for room in neighbours if room not in rooms]
        rooms.append(free[generator.integers(len(free))])
    return rooms


def _place(room: Room, generator: np.random.Generator) -> Block:
    """Draws a block of the room that touches no wall, so that nothing blocks a doorway."""
    dx, dz = generator.integers(1, _SIDE - 1, size=2)
    return room[0] * _PITCH + int(dx), room[1] * _PITCH + int(dz)


def _empty_field() -> list[Cuboid]:
    """Clears what an earlier mission may have drawn in this world, as far as rooms can reach."""
    farthest = max(ROOMS.values()) * _PITCH
    low, high = (-farthest, -farthest), (farthest, farthest)
    return [_block(low, high, "air"), (low[0], FLOOR, low[1], high[0], FLOOR, high[1], _GROUND)]


def _room(room: Room, wall: str) -> list[Cuboid]:
    west, north = room[0] * _PITCH, room[1] * _PITCH
    east, south = west + _SIDE - 1, north + _SIDE - 1
    solid = _block((west - 1, north - 1), (east + 1, south + 1), wall)
    return [solid, _block((west, north), (east, south), "air")]


def _doorway(room: Room, other: Room, generator: np.random.Generator) -> Cuboid:
    wall_x, wall_z = (max(one, two) * _PITCH - 1 for one, two in zip(room, other, strict=True))
    shift = int(generator.integers(_SIDE - _DOOR + 1))
    x, z = room[0] * _PITCH + shift, room[1] * _PITCH + shift
    if room[0] != other[0]:
        return _block((wall_x, z), (wall_x, z + _DOOR - 1), "air")
    return _block((x, wall_z), (x + _DOOR - 1, wall_z), "air")


def _block(low: Block, high: Block, kind: str, height: int = _HEIGHT) -> Cuboid:
    """The cuboid that stands on the floor from corner to corner."""
    return low[0], FLOOR + 1, low[1], high[0], FLOOR + height, high[1], kind


_PORTS = "MissionControl Video Depth Luminance Observations Rewards ColourMap".split()
_CUBOID = '<DrawCuboid x1="{}" y1="{}" z1="{}" x2="{}" y2="{}" z2="{}" type="{}" />'
_MISSION_INIT = """\
<MissionInit xmlns="http://ProjectMalmo.microsoft.com" SchemaVersion="" PlatformVersion="0.37.0">
  <Mission>
    <About><Summary>Find the block of gold.</Summary></About>
    <ModSettings>
      <MsPerTick>{ms_per_tick}</MsPerTick>
      <PrioritiseOffscreenRendering>{offscreen}</PrioritiseOffscreenRendering>
    </ModSettings>
    <ServerSection>
      <ServerInitialConditions>
        <Time><StartTime>6000</StartTime><AllowPassageOfTime>false</AllowPassageOfTime></Time>
        <Weather>clear</Weather>
        <AllowSpawning>false</AllowSpawning>
      </ServerInitialConditions>
      <ServerHandlers>
        <FlatWorldGenerator generatorString="3;7,220*1,5*3,2;3;,biome_1" />
        <DrawingDecorator>{cuboids}</DrawingDecorator>
        <ServerQuitFromTimeUp timeLimitMs="{time_limit_ms}" description="out_of_time" />
        <ServerQuitWhenAnyAgentFinishes />
      </ServerHandlers>
    </ServerSection>
    <AgentSection mode="Survival">
      <Name>Agent</Name>
      <AgentStart><Placement {placement} /></AgentStart>
      <AgentHandlers>
        <VideoProducer want_depth="false"><Width>{width}</Width><Height>{height}</Height></VideoProducer>
        <ContinuousMovementCommands turnSpeedDegs="180">
          <ModifierList type="allow-list"><command>move</command><command>turn</command></ModifierList>
        </ContinuousMovementCommands>
        <RewardForMissionEnd rewardForDeath="0">
          <Reward description="found_goal" reward="{reward:g}" />
        </RewardForMissionEnd>
        <AgentQuitFromTouchingBlockType>
          <Block type="{goal}" description="found_goal" />
        </AgentQuitFromTouchingBlockType>
      </AgentHandlers>
    </AgentSection>
  </Mission>
  <ExperimentUID>{experiment}</ExperimentUID>
  <ClientRole>0</ClientRole>
  <ClientAgentConnection>
    <ClientIPAddress>127.0.0.1</ClientIPAddress>
    <ClientMissionControlPort>0</ClientMissionControlPort><ClientCommandsPort>0</ClientCommandsPort>
    <AgentIPAddress>127.0.0.1</AgentIPAddress>{agent_ports}
  </ClientAgentConnection>
</MissionInit>"""
