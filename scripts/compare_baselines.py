"""Does a trained snapshot beat chance and every constant action? Same episodes, same seeds, for all of them.

    python scripts/compare_baselines.py --game pong --model results/kept/pong/last_model_pong_400000.pth

Plays --evaluation-episodes episodes with the snapshot, with random actions and with each constant action (a
grid of them where actions are continuous), and writes baselines_<game>.json beside the other results: every
mean with its standard error, and by how many standard errors of the difference the snapshot leads chance and
the best constant action.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if __name__ == "__main__":
    from supervision.process import name_missing_packages

    name_missing_packages()

import numpy as np  # noqa: E402

from args import Args, UserError, parse_args  # noqa: E402
from envs.config import EnvConfig, EnvDescription  # noqa: E402
from envs.registry import describe_env  # noqa: E402
from evaluation.evaluator import evaluate, progress_bar  # noqa: E402
from evaluation.policies import Policy, baseline_policy  # noqa: E402
from parameters.usage import EVALUATION  # noqa: E402
from reporting.atomic import write_json
from supervision.process import set_up_logging  # noqa: E402
from wiring.code import canonical  # noqa: E402
from wiring.endings import exit_on_errors  # noqa: E402
from wiring.evaluating.candidates import snapshot_candidate  # noqa: E402
from wiring.setting import results_folder  # noqa: E402

PAGE = EVALUATION._replace(
    about="Compares a snapshot with random and constant actions.",
    examples=(("--model results/last_model_pong_400000.pth", "in 100 episodes each"),),
)
GRID = 5
"""Number of values of each component of an action: -1, -1/2, 0, 1/2 and 1 of its range, which are stand
still, half and full in both directions.
"""


@dataclass(frozen=True)
class Score:
    """Mean of whole-episode scores and its standard error."""

    mean: float
    standard_error: float

    def lead_over(self, other: Score) -> float:
        """Difference of the means in standard errors of that difference."""
        error = math.hypot(self.standard_error, other.standard_error)
        difference = self.mean - other.mean
        return difference / error if error else math.copysign(math.inf, difference) if difference else 0.0


def play(name: str, policy: Policy, args: Args) -> Score:
    """The score of `policy`."""
    print(name, file=sys.stderr)
    with progress_bar(args.evaluation_episodes) as on_progress:
        config, width = args.select(EnvConfig), args.evaluation_envs
        result = evaluate(policy, config, args.evaluation_episodes, args.seed, width, on_progress)
    summary = result.summaries["score_saber"]
    assert summary.standard_error is not None
    return Score(summary.mean, summary.standard_error)


def constant_actions(description: EnvDescription) -> list[str]:
    """Every discrete action; of continuous ones GRID values from low to high for each component.

    Of one or two components all combinations; of more, one component moves while the others stand still.
    """
    if description.num_actions is not None:
        return [str(action) for action in range(description.num_actions)]
    assert description.action_low is not None and description.action_high is not None
    bounds = zip(description.action_low, description.action_high, strict=True)
    axes = [np.linspace(low, high, GRID).tolist() for low, high in bounds]
    actions = itertools.product(*axes) if len(axes) <= 2 else _one_at_a_time(axes)
    return [",".join(f"{value:g}" for value in action) for action in actions]


def _one_at_a_time(axes: Sequence[Sequence[float]]) -> Iterator[tuple[float, ...]]:
    middle = tuple(axis[GRID // 2] for axis in axes)
    yield middle
    for component, axis in enumerate(axes):
        for value in axis:
            if value != middle[component]:
                yield (*middle[:component], value, *middle[component + 1 :])


def compare(args: Args) -> dict[str, object]:
    """All scores and the snapshot's leads."""
    candidate = snapshot_candidate(args)
    description = describe_env(candidate.args.select(EnvConfig))
    names = ["random", *(f"constant:{action}" for action in constant_actions(description))]
    scores = {name: play(name, baseline_policy(name, description), candidate.args) for name in names}
    snapshot = play(str(args.model), candidate.policy, candidate.args)
    best = max(names[1:], key=lambda name: scores[name].mean)
    return {
        "game": args.game,
        "snapshot": {**candidate.origin, **asdict(snapshot)},
        "lead_over_random_in_standard_errors": snapshot.lead_over(scores["random"]),
        "best_constant": best,
        "lead_over_best_constant_in_standard_errors": snapshot.lead_over(scores[best]),
        "episodes": args.evaluation_episodes,
        "baselines": {name: asdict(score) for name, score in scores.items()},
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    set_up_logging()
    args = parse_args(argv, PAGE)
    with exit_on_errors():
        args = canonical(args)
        if args.evaluation_episodes < 2:
            raise UserError("--evaluation-episodes must be 2 or more: one episode has no standard error.")
        folder = results_folder(args)
        comparison = compare(args)
        shown = {name: value for name, value in comparison.items() if name != "baselines"}
        print(json.dumps(shown, indent=2))  # before it is written: a disk may be full
        write_json(folder / f"baselines_{args.file_name}.json", comparison)


if __name__ == "__main__":
    main()
