"""Wires one evaluation: a snapshot, random or constant actions play --evaluation-episodes episodes.

python test_multiple_seed.py --game pong --model results/last_model_pong_1000000.pth
python test_multiple_seed.py --game pong --agent random
python test_multiple_seed.py --kept ms_pacman
python test_multiple_seed.py --model results/last_model_pettingzoo_tictactoe_v3_20000.pth --against random
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import begin_program, set_up_logging

    begin_program()
    set_up_logging()

    from args import parse_args
    from parameters.usage import EVALUATION

    # Parsed before the imports below, which take seconds: --help and a mistake are answered at once.
    ARGS = parse_args(page=EVALUATION)

from contextlib import closing, nullcontext
from pathlib import Path

from args import Args, UserError
from envs.config import EnvConfig
from envs.registry import check_reads, describe_env
from evaluation.evaluator import Observer, Recorder, evaluate, progress_bar
from evaluation.film import FilmRecorder, FrameMetric, PlayWindow
from evaluation.policies import is_baseline
from evaluation.result import evaluation_text, write_evaluation
from evaluation.state_plot import StatePlot
from supervision.process import raise_on_interrupt
from wiring.code import canonical
from wiring.endings import exit_on_errors
from wiring.evaluating.against import check_flags, play_against
from wiring.evaluating.candidates import (
    Candidate,
    baseline_candidate,
    evaluated_name,
    snapshot_candidate,
    snapshot_text,
)
from wiring.record.kept import with_kept
from wiring.record.played import keep_earlier_result, send_film
from wiring.setting import games_to_play, results_folder


def observers(
    args: Args, config: EnvConfig, metric: FrameMetric | None
) -> tuple[Observer | None, Recorder | None]:
    """A window (--render), a film or a graph (--record), or neither."""
    if args.render and args.record:
        raise UserError("--render and --record exclude each other: show the play or film it.")
    if not args.record:
        return (PlayWindow(config) if args.render else None), None
    path = Path(args.record)
    recorder = StatePlot(path, config) if path.suffix == ".png" else _film(args, path, config, metric)
    return recorder, recorder


def _film(args: Args, path: Path, config: EnvConfig, metric: FrameMetric | None) -> FilmRecorder:
    if args.evaluation_episodes % (seats := describe_env(config).seats):
        raise UserError(
            f"A film of {config.game} shows all of its {seats} seats: make --evaluation-episodes a multiple."
        )
    return FilmRecorder(path, config, metric)


def run_evaluation(args: Args) -> None:
    """Each game in turn."""
    folder = results_folder(args)
    games = games_to_play(args)
    check_reads(args.select(EnvConfig), games)
    for game in games:
        _evaluate(args if len(games) == 1 else _one_of_several(args, game), folder)


def _one_of_several(args: Args, game: str) -> Args:
    """With a film of its own."""
    film = args.record and str(
        Path(args.record).with_stem(f"{Path(args.record).stem}_{args.playing(game).file_name}")
    )
    return args.playing(game).model_copy(update={"record": film})


def _evaluate(args: Args, folder: Path) -> None:
    check_flags(args)
    candidate = baseline_candidate(args) if is_baseline(args.agent) else snapshot_candidate(args)
    by_turns = describe_env(candidate.args.select(EnvConfig)).by_turns
    if args.against or (by_turns and not (args.record or args.render)):
        play_against(args, candidate, folder)
    else:
        _play_episodes(args, candidate, folder)


def _play_episodes(args: Args, candidate: Candidate, folder: Path) -> None:
    """Print the table, write evaluation_<game>.json, and the film if one was asked for."""
    config = candidate.args.select(EnvConfig)
    observer, recorder = observers(args, config, candidate.metric)
    width = describe_env(config).seats if args.render else args.evaluation_envs
    window = closing(observer) if isinstance(observer, PlayWindow) else nullcontext()
    with window, progress_bar(args.evaluation_episodes) as on_progress:
        episodes = args.evaluation_episodes
        result = evaluate(candidate.policy, config, episodes, args.seed, width, on_progress, observer)
    print(evaluation_text(result))
    if args.model:
        print(snapshot_text(candidate.origin))
    path = folder / f"evaluation_{evaluated_name(candidate.args)}.json"
    keep_earlier_result(path, result.env_config, candidate.origin)
    write_evaluation(path, result, candidate.origin)
    print(f"Saved {path}.")
    if recorder is not None:
        print(f"Episode {recorder.write(result)} (the median score) is in {args.record}.")
        send_film(candidate.args.model_copy(update={"track": args.track}), Path(args.record or ""))


def main(args: Args) -> None:
    """Entry point."""
    with exit_on_errors():
        run_evaluation(with_kept(canonical(args)))


if __name__ == "__main__":
    raise_on_interrupt()
    main(ARGS)
