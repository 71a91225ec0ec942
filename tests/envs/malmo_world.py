"""What Minecraft would do with one of our missions, on paper: blocks, a walker, a clock and pictures."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

SECONDS_PER_PICTURE = 0.2  # of Minecraft's time; a real client draws faster
WALKING = 4.3  # blocks per second, Minecraft's own
WIDTH = 0.3  # from the middle of the agent to its side, blocks


class World:
    """The world of one <MissionInit> message; raises AttributeError or KeyError where it lacks something."""

    def __init__(self, mission_init: bytes) -> None:
        root = ElementTree.fromstring(mission_init)
        self._spaces = {"": "http://ProjectMalmo.microsoft.com"}
        producer = self._attributes(root, ".//VideoProducer")
        assert producer == {"want_depth": "false"}
        self.width, self.height = int(self._text(root, ".//Width")), int(self._text(root, ".//Height"))
        self.ms_per_tick = int(self._text(root, ".//MsPerTick"))
        self.offscreen = self._text(root, ".//PrioritiseOffscreenRendering")
        self.blocks = Blocks(root, self._spaces)
        place = self._attributes(root, ".//Placement")
        self.x, self.y, self.z = (float(place[axis]) for axis in "xyz")
        self.yaw = float(place["yaw"])
        self.seconds = float(self._attributes(root, ".//ServerQuitFromTimeUp")["timeLimitMs"]) / 1000
        self._degrees = float(self._attributes(root, ".//ContinuousMovementCommands")["turnSpeedDegs"])
        self._gold = self._attributes(root, ".//AgentQuitFromTouchingBlockType/Block")
        self._prizes = {
            prize.attrib["description"]: float(prize.attrib["reward"])
            for prize in root.iterfind(".//RewardForMissionEnd/Reward", self._spaces)
        }
        self._move = self._turn = self._clock = 0.0
        self.reward, self.done = 0.0, False

    def _text(self, root: ElementTree.Element, path: str) -> str:
        return root.findtext(path, namespaces=self._spaces) or ""

    def _attributes(self, root: ElementTree.Element, path: str) -> dict[str, str]:
        element = root.find(path, self._spaces)
        assert element is not None, path
        return element.attrib

    def obey(self, commands: str) -> None:
        """Takes "move 0.37" and "turn -0.25", one on each line."""
        for command in commands.split("\n"):
            verb, value = command.split(" ")
            assert verb in ("move", "turn")
            assert -1 <= float(value) <= 1
            setattr(self, f"_{verb}", float(value))

    def tick(self) -> None:
        """Lets the time of one picture pass."""
        if self.done:
            return
        self.yaw = (self.yaw + self._turn * self._degrees * SECONDS_PER_PICTURE) % 360
        step, angle = self._move * WALKING * SECONDS_PER_PICTURE, math.radians(self.yaw)
        for _ in range(10):  # short paces, so that no wall is jumped
            self._pace(-math.sin(angle) * step / 10, math.cos(angle) * step / 10)
        self._clock += SECONDS_PER_PICTURE
        self.done = self.done or self._clock >= self.seconds - 1e-6

    def _pace(self, dx: float, dz: float) -> None:
        touched = self._around(self.x + dx, self.z + dz)
        if self._gold["type"] in touched:
            self.reward += self._prizes[self._gold["description"]]
            self._move, self.done, self._gold = 0.0, True, {"type": "none"}
        elif touched == {"air"}:
            self.x, self.z = self.x + dx, self.z + dz

    def _around(self, x: float, z: float) -> set[str]:
        corners = ((x + dx, z + dz) for dx in (-WIDTH, WIDTH) for dz in (-WIDTH, WIDTH))
        return {self.blocks.at(a, self.y, b) for a, b in corners}

    def way_to_gold(self) -> tuple[float, float]:
        """Returns the turn and move that bring the agent nearer to the gold, where nothing is between."""
        x, _, z = self.blocks.find("gold_block")
        wanted = math.degrees(math.atan2(self.x - x, z - self.z))
        off = (wanted - self.yaw + 180) % 360 - 180
        return max(-1.0, min(1.0, off / 72)), float(abs(off) < 20)

    def picture(self) -> bytes:
        """Returns raw RGB, lowest row first; red grows upwards, green and blue tell the pose."""
        image: npt.NDArray[np.uint8] = np.zeros((self.height, self.width, 3), np.uint8)
        image[..., 0] = np.arange(self.height)[:, None]
        image[..., 1] = round(self.x * 16 + self.z) % 256
        image[..., 2] = round(self.yaw * 255 / 360)
        image[: self.height // 2, : self.width // 2, 1] = round(self.z * 16) % 256
        return image.tobytes()


class Blocks:
    """All blocks near the origin and the flat world's surface; everything else is air."""

    def __init__(self, root: ElementTree.Element, spaces: dict[str, str]) -> None:
        self._corner = np.array([-64, 220, -64])
        self.types = np.full((128, 32, 128), "air", "U16")
        for cuboid in root.iterfind(".//DrawCuboid", spaces):
            low, high = (
                np.array([int(cuboid.attrib[f"{axis}{corner}"]) for axis in "xyz"]) - self._corner
                for corner in "12"
            )
            assert (low >= 0).all() and (low <= high).all() and (high < self.types.shape).all()
            self.types[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] = cuboid.attrib["type"]

    def find(self, kind: str) -> tuple[float, float, float]:
        """Returns the middle of one block of this type."""
        x, y, z = (np.argwhere(self.types == kind)[0] + self._corner + 0.5).tolist()
        return x, y, z

    def at(self, x: float, y: float, z: float) -> str:
        """Returns the type of the block that holds this point."""
        place = np.floor([x, y, z]).astype(int) - self._corner
        return str(self.types[tuple(place)])
