"""One maze: MiniWorld's rooms, collisions and camera, built from a mission, and the picture it draws into.

MiniWorld: Chevalier-Boisvert et al. 2023, "Minigrid & Miniworld", arXiv:2306.13831.
"""

from collections.abc import Iterable
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyglet
from miniworld.entity import Box
from miniworld.miniworld import MiniWorldEnv, Room
from miniworld.params import DEFAULT_PARAMS
from pyglet import gl

from envs.maze.missions import Mission, draw_layout
from envs.playback import Screen

Vector = npt.NDArray[np.float64] | tuple[float, float, float]

STEP = 0.25  # metres, at a full move
WALL = 0.25  # metres between neighbouring rooms
DOOR = 2.0  # metres wide, in the middle of a wall
RADIUS = 0.25  # of the agent, metres
CUBE = 0.5  # edge, metres

WALL_COLOURS = ((0.85, 0.75, 0.55), (0.55, 0.7, 0.5), (0.5, 0.6, 0.8), (0.75, 0.65, 0.8), (0.8, 0.8, 0.8))
DOOR_COLOUR, FLOOR_COLOUR = (0.35, 0.35, 0.35), (0.45, 0.4, 0.35)  # red, green, blue
PLAIN = {"floor_tex": "white", "wall_tex": "white", "ceil_tex": "white", "no_ceiling": True}
"""Looks of every room, plain and white: MiniWorld's bricks and tiles take half a second each to load, and
compress 30 times worse.
"""
UP = (0.0, 1.0, 0.0)
SUN = (1.0, 3.5, 1.0, 0.0)  # where it is; diagonal, so that the mirror image of a maze is lit like a maze
AMBIENT, DIFFUSE = (0.45, 0.45, 0.45, 1.0), (0.7, 0.7, 0.7, 1.0)  # MiniWorld's light

_BYTES_PER_PIXEL = 4  # red, green, blue and one that is not looked at


class View:
    """A frame buffer of 8 bits per colour in an OpenGL context of its own, in this thread.

    Stands in for miniworld.opengl.FrameBuffer, whose 4 samples of 32-bit floats take twice the time.

    Raises:
        pyglet's own errors where there is no OpenGL.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.window = pyglet.window.Window(width=1, height=1, visible=False)
        gl.glEnable(gl.GL_DEPTH_TEST)
        gl.glEnable(gl.GL_CULL_FACE)
        gl.glPixelStorei(gl.GL_PACK_ALIGNMENT, 1)
        self._frame, self._layers = gl.GLuint(), (gl.GLuint * 2)()
        gl.glGenFramebuffers(1, self._frame)
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, self._frame)
        gl.glGenRenderbuffers(2, self._layers)
        self._attach(self._layers[0], gl.GL_RGBA8, gl.GL_COLOR_ATTACHMENT0)
        self._attach(self._layers[1], gl.GL_DEPTH_COMPONENT16, gl.GL_DEPTH_ATTACHMENT)
        self._pixels = np.zeros((height, width, _BYTES_PER_PIXEL), np.uint8)

    def bind(self) -> None:
        """Makes this the picture that is drawn into."""
        self.window.switch_to()
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, self._frame)
        gl.glViewport(0, 0, self.width, self.height)

    def resolve(self) -> Screen:
        """Returns what was drawn, [height, width, 3] uint8, as a new array."""
        target = self._pixels.ctypes.data
        gl.glReadPixels(0, 0, self.width, self.height, gl.GL_RGBA, gl.GL_UNSIGNED_BYTE, target)
        return np.ascontiguousarray(self._pixels[::-1, :, :3])  # OpenGL's first row is the lowest

    def close(self) -> None:
        """Frees the pictures and the context."""
        self.window.switch_to()
        gl.glDeleteFramebuffers(1, self._frame)
        gl.glDeleteRenderbuffers(2, self._layers)
        self.window.close()

    def _attach(self, layer: int, kind: int, place: int) -> None:
        gl.glBindRenderbuffer(gl.GL_RENDERBUFFER, layer)
        gl.glRenderbufferStorage(gl.GL_RENDERBUFFER, kind, self.width, self.height)
        gl.glFramebufferRenderbuffer(gl.GL_FRAMEBUFFER, place, gl.GL_RENDERBUFFER, layer)


class World(MiniWorldEnv):  # type: ignore[misc]  # the library has no types
    """A maze with a red cube in it; drawn anew from the seed at each reset.

    Several worlds may share a view; each draws from a display list of its own. MiniWorldEnv's constructor is
    left out: it would open a context, two frame buffers and a font per world, and use list 1 for all of them.
    """

    def __init__(self, mission: Mission, view: View) -> None:
        self.shadow_window, self.obs_fb = view.window, view
        self.params = DEFAULT_PARAMS.no_random()
        self.params.set("forward_step", STEP)
        self.max_forward_step, self.domain_rand = STEP, False
        self._mission = mission
        self._list = gl.glGenLists(1)

    def cube_found(self) -> bool:
        """Whether the agent is within one move of touching the cube."""
        return bool(self.near(self.cube))

    def close(self) -> None:
        """Frees the display list."""
        self.shadow_window.switch_to()
        gl.glDeleteLists(self._list, 1)

    def _gen_world(self) -> None:
        self.shadow_window.switch_to()  # a texture may be loaded on the way
        mission = self._mission
        layout = draw_layout(mission, self.np_random)
        rooms = [self._add_room(*divmod(room, mission.columns)) for room in range(mission.rooms)]
        for one, other in layout.doors:
            self._add_door(rooms[one], rooms[other])
        walls = self.np_random.choice(WALL_COLOURS, mission.rooms)
        self._colours = [*walls, *repeat(DOOR_COLOUR, len(layout.doors))]  # as in self.rooms: doors come last
        self.agent.radius = RADIUS
        self.cube = self.place_entity(Box("red", CUBE), room=rooms[layout.goal])
        self.place_agent(room=rooms[layout.start])
        while self.cube_found():
            self.entities.remove(self.agent)
            self.place_agent(room=rooms[layout.start])

    def _add_room(self, row: int, column: int) -> Room:
        side = self._mission.side
        left, top = column * (side + WALL), row * (side + WALL)
        return self.add_rect_room(left, left + side, top, top + side, **PLAIN)

    def _add_door(self, one: Room, other: Room) -> None:
        """Opens the walls between two neighbours; MiniWorld makes the passage a room of its own."""
        if one.mid_x == other.mid_x:
            self.connect_rooms(one, other, min_x=one.mid_x - DOOR / 2, max_x=one.mid_x + DOOR / 2)
        else:
            self.connect_rooms(one, other, min_z=one.mid_z - DOOR / 2, max_z=one.mid_z + DOOR / 2)

    def _render_static(self) -> None:
        """Writes the whole maze into this world's display list: nothing in it moves."""
        gl.glNewList(self._list, gl.GL_COMPILE)
        for light, values in ((gl.GL_POSITION, SUN), (gl.GL_AMBIENT, AMBIENT), (gl.GL_DIFFUSE, DIFFUSE)):
            gl.glLightfv(gl.GL_LIGHT0, light, (gl.GLfloat * 4)(*values))
        for switch in (gl.GL_LIGHTING, gl.GL_LIGHT0, gl.GL_COLOR_MATERIAL):
            gl.glEnable(switch)
        for room, colour in zip(self.rooms, self._colours, strict=True):
            _draw_quads(FLOOR_COLOUR, room.floor_verts, [UP] * len(room.floor_verts))
            _draw_quads(colour, room.wall_verts, room.wall_norms)
        self.cube.render()
        gl.glEndList()

    def _render_world(self, frame_buffer: View, render_agent: bool) -> Screen:
        """Draws the maze; never the agent, which is too small to see on a map."""
        gl.glCallList(self._list)
        return frame_buffer.resolve()


def _draw_quads(colour: Vector, corners: Iterable[Vector], normals: Iterable[Vector]) -> None:
    """Quadrilaterals of one colour (red, green, blue in [0, 1]), four corners and normals for each."""
    gl.glColor3f(*colour)
    gl.glBegin(gl.GL_QUADS)
    for corner, normal in zip(corners, normals, strict=True):
        gl.glNormal3f(*normal)
        gl.glVertex3f(*corner)
    gl.glEnd()
