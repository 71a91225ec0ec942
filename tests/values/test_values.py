"""What agents learn, through the real pipeline, against exact values.

A wrong sign, a return of n - 1 steps, a truncation that is taken for an end, history in the wrong order: each
turns some test here red.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.base import Acting, Agent
from agents.on_policy.agent import OnPolicyAgent
from args import Args, read_args
from launch_learner import run_learner
from reporting.model_files import last_models
from supervision.process import Stop
from tests.values.environments import TABULAR, Array, Bandit, Parabola, Tabular, optimal_values
from wiring.code import canonical
from wiring.setting import restore_agent

ALL = "--serial --threads 1 --reward-clip 0 --log-interval 100000 --adam-eps 1e-8 --seed 5"
REPLAY = (
    " --T-max 4000 --memory-capacity 4000 --learn-start 2000 --replay-frequency 1 --target-update 40"
    " --batch-size 32 --hidden-size 32 --weight-synchro-frequency 200 --lr 0.001 --envs-per-actor 4"
)
ROLLOUTS = (
    " --learn-start 32 --sequential --envs-per-actor 8 --rollout-length 16 --T-max 60000 --head-sizes 32"
    " --gae-lambda 0.9 --lr 0.002"
)
# A rate that falls to 0 takes iqn as near in a quarter of the updates, and PPO in two fifths.
PPO = " --T-max 24000 --batch-size 64 --epochs 2 --lr 0.004 --lr-end 0"
NOISY = " --noisy-std 0.02"
AGENTS = {
    "dqn": REPLAY,
    "double_dqn": REPLAY,
    "rainbow": f"{REPLAY}{NOISY} --atoms 51 --V-min -2 --V-max 6",
    "iqn": f"{REPLAY}{NOISY} --T-max 8000 --memory-capacity 8000 --replay-frequency 4 --lr 0.002 --lr-end 0"
    " --kappa 0.01 --num-tau-samples 16 --num-tau-prime-samples 16 --num-quantile-samples 32",
    "naf": f"{REPLAY} --head-sizes 32 --polyak 0.05 --ou-sigma 0.5",
    "a2c": f"{ROLLOUTS}",
    "ppo": f"{ROLLOUTS}{PPO}",
    "ppo_rnd": f"{ROLLOUTS}{PPO} --int-coeff 0 --ext-coeff 1 --hidden-size 16",
}
DISCOUNTS = {"Forever": 0.8, "Echo": 0.5}
ELSEWHERE = 0.9
FLAGS = {
    "Chain": "--multi-step 1",
    "Terminated": "--multi-step 3",
    "Truncated": "--multi-step 3",
    "Forever": "--multi-step 2",
    "WindyWalk": "--multi-step 1",
    "Echo": "--multi-step 1 --history-length 4",
    # With 4 environments, and weights over the memory's maximum, some seeds learn too little.
    "Bandit": "--multi-step 1 --envs-per-actor 1",
    "Parabola": "--multi-step 1",
}
RELATIVE = 0.02
"""Of the largest value: what an approximation may be off."""
TWINS = 200
"""Data sets of a twin from which the spread of values is taken."""

Q_AGENTS = ("dqn", "double_dqn", "rainbow", "iqn")
CRITICS = ("a2c", "ppo", "ppo_rnd")
QUICK = {
    ("Chain", "double_dqn"), ("Terminated", "dqn"), ("Truncated", "rainbow"), ("Forever", "a2c"),
    ("Truncated", "ppo_rnd"), ("WindyWalk", "dqn"), ("Echo", "iqn"),
}  # fmt: skip
"""Each environment and each agent once; the others are marked slow."""


def _pairs() -> list[Any]:
    """Critics learn the values of the policy that plays: the optimal ones where actions do nothing."""
    alone = [(place, agent) for place in ("Terminated", "Truncated", "Forever", "Echo") for agent in CRITICS]
    pairs = [*((place, agent) for place in TABULAR for agent in Q_AGENTS), *alone]
    return [pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow) for pair in pairs]


def _trained(place: str, agent: str, socket: str, folder: Path, more: str = "") -> tuple[Agent, Args]:
    """The agent of the last snapshot."""
    words = f"{ALL} {AGENTS[agent]} {FLAGS[place]} --agent {agent} --game Values/{place}-v0 {more}"
    discount = DISCOUNTS.get(place, ELSEWHERE)
    where = ["--host-redis", socket, "--run", folder.name, "--path-to-results", str(folder)]
    gamma = ["--discount", str(discount), "--ext-discount", str(discount)]
    args = canonical(read_args([*words.split(), *where, *gamma]))
    run_learner(args, Stop())
    (model,) = last_models(folder, args.file_name)
    return restore_agent(model, args).agent, args


def values_of(agent: Agent, states: NDArray[np.float32]) -> Array:
    """[M] of the greedy action, without noise; of the extrinsic head."""
    if isinstance(agent, OnPolicyAgent):
        with torch.no_grad():
            return np.asarray(agent.online.policy(torch.from_numpy(states)).values[:, 0], np.float64)
    acting = agent.act(states, agent.mean_acting_noise(len(states)))
    assert isinstance(acting, Acting)
    support = getattr(agent, "_support", None)  # Rainbow's estimates are probabilities of these returns
    if support is not None:
        return np.asarray(acting.greedy.astype(np.float64) @ support.double().numpy())
    return np.asarray(acting.greedy.mean(1), np.float64)


def _spread(kind: type[Tabular], steps: int, discount: float) -> Array:
    """[S] standard deviations of the values of tables that are estimated from `steps` random steps."""
    generator, transitions = np.random.default_rng(0), kind.transitions
    visits = steps / transitions[:, :, 0].size
    counts = generator.multinomial(max(int(visits), 1), transitions, (TWINS, *transitions.shape[:2]))
    tables = [optimal_values(each / each.sum(2, keepdims=True), kind.rewards, discount) for each in counts]
    return np.asarray(np.std(tables, axis=0), np.float64)


@pytest.mark.parametrize(("place", "agent"), _pairs())
def test_values_are_those_of_the_table(place: str, agent: str, redis_socket: str, tmp_path: Path) -> None:
    """Within 2 % of the largest where nothing is random, else three standard deviations of estimates more."""
    kind, discount = TABULAR[place], DISCOUNTS.get(place, ELSEWHERE)
    exact = optimal_values(kind.transitions, kind.rewards, discount)
    learned, args = _trained(place, agent, redis_socket, tmp_path)
    off = np.abs(values_of(learned, kind.states()) - exact)
    bound = RELATIVE * np.abs(exact).max() + 3 * _spread(kind, args.memory_capacity, discount)
    assert (off < bound).all(), (exact, values_of(learned, kind.states()), bound)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "more"),
    [
        *((agent, "--kappa 10") for agent in Q_AGENTS[:3]),
        ("dqn", "--kappa 10 --priority-exponent 1 --priority-weight 1 --weights-normalised-by memory"),
    ],
)
def test_means_of_arms(agent: str, more: str, redis_socket: str, tmp_path: Path) -> None:
    """The better arm's, within three standard errors of the mean of a quarter of all pulls.

    Errors are squared (kappa): what a Huber loss finds of unequal rewards lies between mean and median.
    """
    learned, args = _trained("Bandit", agent, redis_socket, tmp_path, more)
    best = Bandit.means.max()
    error = 3 * np.sqrt(4 / 5 - best**2) / np.sqrt(args.memory_capacity / 4)  # E[(2 u^2)^2] = 4/5
    assert abs(values_of(learned, Bandit.seen[None, None])[0] - best) < RELATIVE * best + error


@pytest.mark.slow
def test_quantiles_of_arms(redis_socket: str, tmp_path: Path) -> None:
    """The distribution function at learned quantiles, against the taus: 0.05 apart in the mean at most."""
    learned, _ = _trained("Bandit", "iqn", redis_socket, tmp_path)
    taus = (torch.arange(50) + 0.5)[None] / 50
    state = torch.from_numpy(Bandit.seen[None, None])
    network: Any = learned.online  # type: ignore[attr-defined]
    quantiles = network(state, taus, learned.mean_acting_noise(1))[0].detach().double().numpy()  # [50, 2]
    apart = [np.abs(Bandit.below(arm, quantiles[:, arm]) - taus[0].numpy()).mean() for arm in (0, 1)]
    assert max(apart) < 0.05, apart


def test_the_top_of_a_parabola(redis_socket: str, tmp_path: Path) -> None:
    """NAF finds where it is and how high."""
    learned, _ = _trained("Parabola", "naf", redis_socket, tmp_path)
    state = Parabola.seen[None, None]
    best = float(learned.greedy(state)[0, 0])  # type: ignore[attr-defined]
    assert abs(values_of(learned, state)[0] - Parabola.largest) < RELATIVE * Parabola.largest
    assert abs(best - Parabola.best) < RELATIVE * 4  # of the range
