"""From an event log to a Minari dataset, for offline learning elsewhere (https://minari.farama.org).

Needs the optional package `minari` with `h5py`; the log itself does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from event_log.reader import read_episodes, read_header
from event_log.records import EventLogError, LogHeader

if TYPE_CHECKING:
    from gymnasium.spaces import Box, Discrete
    from minari.data_collector import EpisodeBuffer


def export(path: Path, dataset_id: str, chosen: Container[int] | None) -> int:
    """Make the dataset `dataset_id` of the chosen episodes (None: all); returns how many it holds.

    It goes where Minari keeps its own (MINARI_DATASETS_PATH, by default ~/.minari/datasets). Frames are kept
    without loss. An episode that was broken off ends with a truncation; where the frame behind its last step
    is not known, that step is left out. Raises EventLogError.
    """
    try:
        import h5py  # noqa: F401 - what Minari keeps its data in
        import minari
        from minari.dataset.minari_dataset import parse_dataset_id
    except ImportError as error:
        raise EventLogError(
            f"--minari needs two more packages ({error}): pip install -r requirements-minari.txt"
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
