"""A picture in memory that OpenGL draws into, without a display."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyglet
from pyglet import gl

from envs.playback import Screen

Vector = npt.NDArray[np.float64] | tuple[float, float, float]

_BYTES_PER_PIXEL = 4  # red, green, blue and one that is not looked at


class View:
    """A frame buffer of 8 bits per colour in an OpenGL context of its own, in this thread.

    Stands in for miniworld.opengl.FrameBuffer, whose 4 samples of 32-bit floats take twice the time.

    Args:
        width: pixels.
        height: pixels.

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


def draw_quads(colour: Vector, corners: Iterable[Vector], normals: Iterable[Vector]) -> None:
    """Draws quadrilaterals of one colour (red, green, blue in [0, 1]), four corners and normals for each."""
    gl.glColor3f(*colour)
    gl.glBegin(gl.GL_QUADS)
    for corner, normal in zip(corners, normals, strict=True):
        gl.glNormal3f(*normal)
        gl.glVertex3f(*corner)
    gl.glEnd()
