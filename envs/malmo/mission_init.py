"""The message that starts a mission: mission_init.xml with an arena and the user's settings filled in.

Its form is that of Malmo 0.37 (Johnson et al. 2016, IJCAI; Schemas/MissionInit.xsd). All ports in it are 0:
with MalmoEnv's protocol everything passes through one connection. What ends the mission is the touch of the
gold, with the only reward there is, or the end of its time.
"""

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from envs.config import EnvConfig
from envs.malmo.arena import FLOOR, Arena

GOAL_REWARD = 1.0  # as in the file, under RewardForMissionEnd
_NAMESPACE = "http://ProjectMalmo.microsoft.com"
_MS_PER_TICK = 50  # Minecraft's own
_TEMPLATE = Path(__file__).with_name("mission_init.xml")


def mission_init(config: EnvConfig, arena: Arena, experiment: str) -> bytes:
    """Returns the message <MissionInit> of one episode; `experiment` is a name that no other episode has."""
    root = ElementTree.parse(_TEMPLATE).getroot()
    root.set("xmlns", _NAMESPACE)
    _fill(root, "ExperimentUID", experiment)
    _fill(root, ".//MsPerTick", max(1, round(_MS_PER_TICK / config.overclock_rate)))
    _fill(root, ".//PrioritiseOffscreenRendering", str(not config.onscreen_rendering).lower())
    _fill(root, ".//VideoProducer/Width", config.frame_width)
    _fill(root, ".//VideoProducer/Height", config.frame_height)
    _set(root, ".//ServerQuitFromTimeUp", timeLimitMs=round(1000 * config.episode_time_sec))
    x, z = arena.start
    _set(root, ".//Placement", x=x + 0.5, y=FLOOR + 1, z=z + 0.5, yaw=arena.yaw)
    drawing = _find(root, ".//DrawingDecorator")
    for cuboid in arena.cuboids:
        SubElement(drawing, "DrawCuboid", {name: str(value) for name, value in cuboid._asdict().items()})
    return ElementTree.tostring(root)


def _find(root: Element, path: str) -> Element:
    found = root.find(path)
    assert found is not None, f"{_TEMPLATE} has no {path}"
    return found


def _fill(root: Element, path: str, value: object) -> None:
    _find(root, path).text = str(value)


def _set(root: Element, path: str, **values: object) -> None:
    _find(root, path).attrib.update({name: str(value) for name, value in values.items()})
