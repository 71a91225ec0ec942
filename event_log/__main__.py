"""Look into an event log: counts, rewards, pictures, films, and export.

python -m event_log random.events
python -m event_log random.events --episodes 3,7-9 --nth 10 --img-output-dir pictures
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from event_log.export import write_film, write_minari, write_pictures
from event_log.records import EventLogError
from event_log.summary import Outline, read_outlines, summary_text
from reporting.film import FilmError

log = logging.getLogger(__name__)

PICTURES_PER_SECOND = 15
"""Agent steps of an Atari game in real time: 60 frames per second, four to a step."""


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
    add("--nth", type=_positive, default=1, metavar="N", help=nth_help)
    add("--img-output-dir", type=Path, metavar="DIR", help="write frames there as PNG files")
    add("--film", type=Path, metavar="FILE.mp4", help="make a film of them")
    add("--fps", type=_positive, default=PICTURES_PER_SECOND, help="its pictures per second (%(default)s)")
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


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0.")
    return int(text)


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


if __name__ == "__main__":
    main()
