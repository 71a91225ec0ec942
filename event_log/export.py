"""From an event log to pictures, films and Minari datasets. Frames are those that the agent saw."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from event_log.reader import read_episodes, read_header
from event_log.records import EventLogError, LoggedEpisode, LogHeader
from reporting.film import mp4_film

if TYPE_CHECKING:
    from gymnasium.spaces import Box, Discrete
    from minari.data_collector import EpisodeBuffer

FILM_WIDTH = 320
"""Width in pixels to which the frames of a film are enlarged at least, by a whole even factor: the text needs
room.
"""
LONGEST_SIDE = 1 << 13
"""Longest side in pixels of frames that become a picture: no encoder of films takes longer ones."""
LINE_HEIGHT, TEXT_SCALE = 20, 0.45

Picture = NDArray[np.uint8]  # [h, w, 3], OpenCV's order of colours


def check_pictures(path: Path) -> None:
    """Raises EventLogError when the frames of a log are no pictures."""
    header = read_header(path)
    shape = header.frame_shape
    grey, coloured = len(shape) == 2, len(shape) == 3 and shape[-1] in (1, 3)
    if header.frame_dtype != "uint8" or not (grey or coloured) or max(shape[:2]) > LONGEST_SIDE:
        raise EventLogError(
            f"There is no picture in {path}: its frames are {header.frame_dtype} of shape {shape}."
        )


def write_pictures(path: Path, folder: Path, chosen: Container[int] | None, nth: int) -> int:
    """Write every `nth` frame of the chosen episodes (None: all) as PNG; returns how many.

    A name tells episode, step, and the action taken there with its reward. Raises EventLogError.
    """
    check_pictures(path)
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for episode in read_episodes(path, chosen):
            for step in range(0, len(episode.frames), nth):
                words = f"episode_{episode.number:05d}_step_{step:06d}", *_action_text(episode, step)
                _, png = cv2.imencode(".png", _in_colour(episode.frames[step]))
                (folder / f"{'_'.join(words).replace(' ', '_')}.png").write_bytes(png.tobytes())
                written += 1
    except OSError as error:
        raise EventLogError(f"The pictures cannot be written to {folder}: {error.strerror}.") from error
    return written


def _action_text(episode: LoggedEpisode, step: int) -> list[str]:
    """Action and reward; nothing at a last frame."""
    if step >= len(episode.r_t):
        return ["end"]
    action = ",".join(f"{part:.3g}" for part in np.atleast_1d(episode.a_t[step]).tolist())
    return [f"action {action}", f"reward {episode.r_t[step]:g}"]


def _in_colour(frame: NDArray[Any]) -> Picture:
    coloured = frame.ndim == 3 and frame.shape[-1] == 3
    return np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR if coloured else cv2.COLOR_GRAY2BGR), np.uint8)


def write_film(
    path: Path, film_path: Path, chosen: Container[int] | None, nth: int, pictures_per_second: float
) -> int:
    """Film every `nth` frame of the chosen episodes, one after the other; returns how many frames.

    Episode, step, action and reward stand under the picture. Raises EventLogError or FilmError.
    """
    check_pictures(path)
    written = 0
    with mp4_film(film_path, pictures_per_second) as append:
        for episode in read_episodes(path, chosen):
            for step in range(0, len(episode.frames), nth):
                text = [f"episode {episode.number}  step {step}", "  ".join(_action_text(episode, step))]
                append(_captioned(episode.frames[step], text))
                written += 1
    return written


def _captioned(frame: NDArray[Any], text: list[str]) -> Picture:
    height, width = frame.shape[:2]
    scale = 2 * max(-(-FILM_WIDTH // (2 * width)), 1)
    picture = np.zeros((height * scale + LINE_HEIGHT * len(text), width * scale, 3), np.uint8)
    size = (width * scale, height * scale)
    picture[: size[1]] = cv2.resize(_in_colour(frame), size, interpolation=cv2.INTER_NEAREST)
    for line, words in enumerate(text, 1):
        place = (4, size[1] + LINE_HEIGHT * line - 6)
        cv2.putText(picture, words, place, cv2.FONT_HERSHEY_SIMPLEX, TEXT_SCALE, (255, 255, 255))
    return picture


def write_minari(path: Path, dataset_id: str, chosen: Container[int] | None) -> int:
    """Make the dataset `dataset_id` of the chosen episodes (None: all); returns how many it holds.

    Datasets are for offline learning elsewhere (https://minari.farama.org); this needs the optional packages
    `minari` and `h5py`. It goes where Minari keeps its own (MINARI_DATASETS_PATH, by default
    ~/.minari/datasets). Frames are kept without loss. An episode that was broken off ends with a truncation;
    where the frame after its last step is unknown, that step is left out. Raises EventLogError.
    """
    try:
        import h5py  # noqa: F401 - the format of Minari's files
        import minari
        from minari.dataset.minari_dataset import parse_dataset_id
    except ImportError as error:
        raise EventLogError(
            f"--minari needs two more packages ({error}): pip install -r requirements/minari.txt"
        ) from error
    observations, actions = _spaces(read_header(path))
    try:
        parse_dataset_id(dataset_id)  # first: Minari makes folders for names that it then refuses
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # author, link to code: the user's own to add
            dataset = minari.create_dataset_from_buffers(
                dataset_id,
                _buffers(path, chosen),
                observation_space=observations,
                action_space=actions,
                description=f"Recorded from {read_header(path)}.",
                data_format="hdf5",
                jpeg_encoding=False,
            )
    except ValueError as error:
        raise EventLogError(f"Minari refuses the dataset {dataset_id}: {error}") from error
    return int(dataset.total_episodes)


def _spaces(header: LogHeader) -> tuple[Box, Discrete | Box]:
    from gymnasium.spaces import Box, Discrete

    low, high = (0.0, 255.0) if header.frame_dtype == "uint8" else (-np.inf, np.inf)
    observations = Box(low, high, header.frame_shape, dtype=np.dtype(header.frame_dtype))
    if header.num_actions is not None:
        return observations, Discrete(header.num_actions)
    lowest, highest = np.array(header.action_low, np.float32), np.array(header.action_high, np.float32)
    return observations, Box(lowest, highest, dtype=np.float32)


def _buffers(path: Path, chosen: Container[int] | None) -> Iterator[EpisodeBuffer]:
    from minari.data_collector import EpisodeBuffer

    for episode in read_episodes(path, chosen):
        steps = len(episode.frames) - 1
        if steps:
            yield EpisodeBuffer(
                observations=episode.frames,
                actions=episode.a_t[:steps],
                rewards=episode.r_t[:steps],
                terminations=_last(steps, episode.terminated),
                truncations=_last(steps, not episode.terminated),
            )


def _last(steps: int, flag: bool) -> NDArray[np.bool_]:
    """[T] False, and `flag` at the last step."""
    flags = np.zeros(steps, np.bool_)
    flags[-1] = flag
    return flags
