"""Look into an event log: counts, rewards, pictures, films, and export.

python -m event_log random.events
python -m event_log random.events --episodes 3,7-9 --nth 10 --img-output-dir pictures
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import begin_program

    begin_program()

import argparse
import logging
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from event_log.export import write_film, write_minari, write_pictures
from event_log.reader import read_pieces
from event_log.records import EventLogError
from reporting.film import FilmError
from supervision.process import INTERRUPTED, at_least_one, raise_on_interrupt

log = logging.getLogger(__name__)

PICTURES_PER_SECOND = 15
"""Agent steps of an Atari game in real time: 60 frames per second, four to a step."""
MOST_ROWS = 40
"""Rows of a table that a screen shows; more values than these are counted in BINS of equal width."""
BINS = 20


@dataclass(frozen=True)
class EpisodeNumbers:
    """Numbers of episodes, as in 3,7-9."""

    ranges: tuple[range, ...]

    def __contains__(self, number: object) -> bool:
        return any(number in numbers for numbers in self.ranges)


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse; ends the process with a sentence and exit code 2 on a mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m event_log",
        description="Looks into an event log that an actor wrote with --event-log-out: counts episodes and"
        " events, shows how often each reward came, and makes pictures, a film or a Minari dataset of it.",
    )
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="the event log")
    add("--per-episode", action="store_true", help="count scores of whole episodes instead of rewards")
    add("--episodes", type=_numbers, metavar="3,7-9", help="only these episodes, numbered from 0")
    nth_help = "of these every Nth frame, for pictures and film"
    add("--nth", type=at_least_one, default=1, metavar="N", help=nth_help)
    add("--img-output-dir", type=Path, metavar="DIR", help="write frames there as PNG files")
    add("--film", type=Path, metavar="FILE.mp4", help="make a film of them")
    fps_help = "its pictures per second (%(default)s)"
    add("--fps", type=at_least_one, default=PICTURES_PER_SECOND, help=fps_help)
    add("--minari", metavar="ID", help="make a Minari dataset of this name, such as pong/random-v0")
    options = parser.parse_args(argv)
    if options.nth > 1 and not (options.img_output_dir or options.film):
        parser.error("--nth goes with --img-output-dir or --film.")
    return options


def _numbers(text: str) -> EpisodeNumbers:
    ranges = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last if dash else first).isdecimal()):
            raise argparse.ArgumentTypeError(f"{text!r} does not name episodes as 3,7-9 does.")
        ranges.append(range(int(first), int(last or first) + 1))
    return EpisodeNumbers(tuple(ranges))


def run(options: argparse.Namespace) -> None:
    """Do what the command line asks for. Raises EventLogError or FilmError."""
    episodes = read_outlines(options.file, options.episodes)
    _check_found(options, episodes)
    print(summary_text(episodes, options.per_episode))
    if options.img_output_dir:
        written = write_pictures(options.file, options.img_output_dir, options.episodes, options.nth)
        print(f"\nWrote {written} pictures to {options.img_output_dir}.")
    if options.film:
        written = write_film(options.file, options.film, options.episodes, options.nth, options.fps)
        print(f"\nFilmed {written} frames in {options.film}.")
    if options.minari:
        written = write_minari(options.file, options.minari, options.episodes)
        print(f"\nMade the Minari dataset {options.minari} of {written} episodes.")


def _check_found(options: argparse.Namespace, episodes: Sequence[Outline]) -> None:
    for numbers in options.episodes.ranges if options.episodes else ():
        if not any(episode.number in numbers for episode in episodes):
            named = "-".join(str(number) for number in sorted({numbers.start, numbers.stop - 1}))
            raise EventLogError(f"{options.file} holds no episode {named}.")


class Outline(NamedTuple):
    """An episode without its frames."""

    number: int
    r_t: NDArray[np.float64]  # [T] raw
    ended: bool  # False for one that was broken off


def read_outlines(path: Path, chosen: Container[int] | None = None) -> list[Outline]:
    """All episodes of a log, or those `chosen` by number. Raises EventLogError when `path` is none."""
    rewards: dict[int, list[NDArray[np.float64]]] = {}
    ended: set[int] = set()
    for piece in read_pieces(path):
        if chosen is None or piece.episode in chosen:
            rewards.setdefault(piece.episode, []).append(piece.r_t.copy())  # a view would keep the frames
            ended.update([piece.episode] if piece.terminated or piece.truncated else [])
    return [Outline(number, np.concatenate(rewards[number]), number in ended) for number in sorted(rewards)]


def summary_text(episodes: Sequence[Outline], per_episode: bool) -> str:
    """Counts, lengths and scores, and how often each reward came, or with `per_episode` each score."""
    whole = [episode for episode in episodes if episode.ended]
    rewards = np.concatenate([np.empty(0), *(episode.r_t for episode in episodes)])
    scores = np.array([episode.r_t.sum() for episode in whole])
    parts = [[f"read {len(episodes)} episodes for a total of {len(rewards)} events"]]
    if whole:
        lengths = np.array([len(episode.r_t) for episode in whole])
        head = f"{'':6}{'mean':>14}{'min':>14}{'max':>14}"
        parts += [[head, _statistics("length", lengths), _statistics("score", scores)]]
    if broken := len(episodes) - len(whole):
        parts += [[f"broken off, and left out of lengths and scores: {broken}"]]
    parts += [_frequencies("score", scores) if per_episode else _frequencies("reward", rewards)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _statistics(name: str, values: NDArray[np.int64] | NDArray[np.float64]) -> str:
    return f"{name:6}{values.mean():14.2f}{values.min():14.10g}{values.max():14.10g}"


def _frequencies(name: str, values: NDArray[np.float64]) -> list[str]:
    """A table of share, count and value, the largest value first; empty where there is no value."""
    found, counts = np.unique(values, return_counts=True)
    labels = [f"{value:8.10g}" for value in found]
    if len(found) > MOST_ROWS:
        edges = np.linspace(values.min(), values.max(), BINS + 1)
        counts, _ = np.histogram(values, edges)
        labels = [f"{low:8.3g} to {high:.3g}" for low, high in zip(edges[:-1], edges[1:], strict=True)]
    rows = [
        f"{count / len(values):8.5f} {count:8d} {label}"
        for count, label in zip(counts.tolist(), labels, strict=True)
    ]
    return [f"{'share':>8} {'count':>8} {name:>8}", *reversed(rows)] if rows else []


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = read_options(argv)
    try:
        run(options)
    except (EventLogError, FilmError) as error:
        log.error("error: %s", error)
        raise SystemExit(2) from error
    except OSError as error:
        log.error("error: %s", error)
        raise SystemExit(1) from error
    except KeyboardInterrupt as interruption:
        log.error("Interrupted.")
        raise SystemExit(INTERRUPTED) from interruption


if __name__ == "__main__":
    raise_on_interrupt()
    main()
