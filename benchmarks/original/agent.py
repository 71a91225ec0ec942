"""The slow twins of learning, acting and the whole loop, as in Toromanoff et al. 2019.

Written plainly by us and never tuned: the same arithmetic, one forward pass after the other, in float32.

    python -m benchmarks.original.agent SOCKET SPEC SEED    # the loop: learner, actor and sampler

The loop's three processes keep in step 1 : 4 through counters in Redis.
"""

from __future__ import annotations

import copy
import io
import math
import multiprocessing
import sys
import time
from collections import deque
from multiprocessing.queues import Queue
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from agents.base import TensorBatch
from agents.iqn import IqnConfig
from agents.parts.learning import batch_to_device
from benchmarks.harness import BETA, BUFFER, CAPACITY, record, setting_for
from benchmarks.original.learner import PlainLearner
from benchmarks.original.networks import Noise, NoisyDueling, convolutions_of
from benchmarks.original.replay import OriginalReplay, Step, steps_of
from envs.config import EnvConfig
from envs.contract import SeededVectorEnv
from envs.registry import make_env
from memory.replay.batch import Batch
from memory.server.connection import RedisConfig, make_client
from wiring.setting import Setting

PRIORITIES_AT_ONCE = 32
"""Transitions in a forward pass for priorities: the learner's batch."""
NOISE_HELD = 4
"""Steps of an actor for which one draw of noise serves: the replay frequency."""
QUEUED = 10
"""Batches that the sampler prepares ahead."""
SLEEP_S = 0.001
UPDATES, STEPS, WEIGHTS = "naive:updates", "naive:steps", "naive:weights"


class OriginalIqn(NoisyDueling):
    """Features repeated for every tau, then a noisy stream for the value and one for the advantages."""

    def __init__(self, config: IqnConfig, torso: tuple[nn.Sequential, int], num_actions: int) -> None:
        """`torso`: convolutions, and how many features they give."""
        convolutions, features = torso
        super().__init__(features, config.hidden_size, num_actions, 1, config.noisy_std)
        self.convolutions = convolutions
        self.embedding = nn.Linear(config.quantile_embedding_dim, features)

    def forward(self, frames: Tensor, taus: Tensor) -> Tensor:
        """frames [B, H, 84, 84] uint8, taus [B, N] -> quantiles [B, N, A]."""
        rows, samples = taus.shape
        features = self.convolutions(frames.float() / 255)  # [B, F]
        repeated = features.repeat_interleave(samples, 0)  # [B * N, F]
        counted = torch.arange(1, self.embedding.in_features + 1, device=taus.device)
        angles = math.pi * counted * taus.reshape(-1, 1)
        x = repeated * functional.relu(self.embedding(torch.cos(angles)))
        return self.estimates(x).view(rows, samples, -1)


class Randomness(NamedTuple):
    """The randomness of one forward pass."""

    taus: Tensor  # [B, samples]
    noise: Noise


class OriginalLearner(PlainLearner[OriginalIqn, list[Randomness]]):
    """For a setting of IQN."""

    def __init__(self, setting: Setting) -> None:
        self._config = setting.args.select(IqnConfig)
        assert setting.problem.num_actions is not None
        torch.manual_seed(setting.args.seed)
        torso = convolutions_of(self._config.torso, setting.problem.observation_shape[0])
        online = OriginalIqn(self._config, torso, setting.problem.num_actions)
        super().__init__(online, lr=self._config.lr, eps=self._config.adam_eps)
        self.target = copy.deepcopy(self.online)

    @torch.no_grad()
    def priorities(self, batch: TensorBatch) -> Tensor:
        """Returns the losses [B] of an actor's own transitions, by forward passes of their own."""
        return self.losses(batch, self.draw(len(batch.r_t)))

    def draw(self, rows: int) -> list[Randomness]:
        """Returns fresh taus and noise of the three forward passes: at s_t to select, at s_t to evaluate, at
        s_tm1.
        """
        config = self._config
        samples = config.num_quantile_samples, config.num_tau_prime_samples, config.num_tau_samples
        return [Randomness(torch.rand(rows, count), self.online.draw_noise()) for count in samples]

    def losses(self, batch: TensorBatch, draws: list[Randomness]) -> Tensor:
        """Returns the quantile Huber losses [B], summed over N and averaged over N'."""
        selecting, evaluating, learned = draws
        rows = torch.arange(len(batch.r_t))
        with torch.no_grad():
            self.online.keep_noise(selecting.noise)
            a_t = self.online(batch.s_t, selecting.taus).mean(1).argmax(1)
            self.target.keep_noise(evaluating.noise)
            z_t = self.target(batch.s_t, evaluating.taus)[rows, :, a_t]  # [B, N']
            targets = batch.r_t.unsqueeze(1) + batch.discount_t.unsqueeze(1) * z_t
        self.online.keep_noise(learned.noise)
        z_tm1 = self.online(batch.s_tm1, learned.taus)[rows, :, batch.a_tm1]  # [B, N]
        delta = targets.unsqueeze(1) - z_tm1.unsqueeze(2)  # [B, N, N']
        kappa = self._config.kappa
        huber = torch.where(delta.abs() <= kappa, delta**2 / 2, kappa * (delta.abs() - kappa / 2))
        quantile = (learned.taus.unsqueeze(2) - (delta.detach() < 0).float()).abs() * huber / kappa
        summed: Tensor = quantile.sum(1).mean(1)
        return summed


class OriginalActor:
    """Plays one environment, one state per forward pass."""

    def __init__(self, learner: OriginalLearner, env: SeededVectorEnv, setting: Setting) -> None:
        self._online, self._env = learner.online, env
        self._quantiles = setting.args.num_quantile_samples
        self._stack: deque[NDArray[np.uint8]] = deque(maxlen=setting.args.history_length)
        self._frame = env.reset()[0][0]
        self._timestep, self._steps = 0, 0

    @torch.no_grad()
    def step(self) -> Step:
        """Chooses an action and steps the environment."""
        if self._timestep == 0:
            self._stack.extend([np.zeros_like(self._frame)] * (self._stack.maxlen or 0))
        self._stack.append(self._frame)
        if self._steps % NOISE_HELD == 0:
            self._online.keep_noise(self._online.draw_noise())
        self._steps += 1
        state = torch.from_numpy(np.stack(self._stack)).unsqueeze(0)
        action = int(self._online(state, torch.rand(1, self._quantiles)).mean(1).argmax(1))
        frames, rewards, terminated, truncated, _ = self._env.step(np.array([action]))
        ended = bool(terminated[0] or truncated[0])
        step = Step(self._timestep, self._frame, action, float(np.clip(rewards[0], -1, 1)), ended)
        self._timestep += 1
        if ended:  # the environments restart in the step after an episode's end
            frames, self._timestep = self._env.step(np.array([0]))[0], 0
        self._frame = frames[0]
        return step


def transitions_of(steps: list[Step], history_length: int, multi_step: int, discount: float) -> TensorBatch:
    """Returns an actor's buffer as n-step transitions: of all but the first H - 1 and the last n steps."""
    first, count = history_length - 1, len(steps) - history_length - multi_step + 1
    frames = torch.from_numpy(np.stack([step.frame for step in steps]))
    rewards = torch.tensor([step.reward for step in steps])
    alive = torch.tensor([float(not step.terminal) for step in steps])
    r_t, discount_t = torch.zeros(count), torch.ones(count)
    for ahead in range(multi_step):
        r_t += discount_t * rewards[first + ahead : first + ahead + count]
        discount_t *= discount * alive[first + ahead : first + ahead + count]
    stacks = frames.unfold(0, history_length, 1).movedim(-1, 1)  # [len(steps) - H + 1, H, *frame]
    actions = torch.tensor([step.action for step in steps])[first : first + count]
    s_tm1, s_t = stacks[:count], stacks[multi_step : multi_step + count]
    return TensorBatch(s_tm1, actions, r_t, discount_t, s_t, torch.ones(count))


def play(redis: RedisConfig, setting: Setting) -> None:
    """One environment for ever: never further ahead than the interval between weights."""
    torch.set_num_threads(1)
    args, client = setting.args, make_client(redis)
    replay, learner = OriginalReplay(make_client(redis), setting, fresh=False), OriginalLearner(setting)
    actor = OriginalActor(learner, make_env(args.select(EnvConfig), [args.seed]), setting)
    buffer: list[Step] = []
    steps = 0
    while True:
        if steps % args.weight_synchro_frequency == 0:
            weights = client.get(WEIGHTS)
            learner.online.load_state_dict(torch.load(io.BytesIO(weights), weights_only=True))
        buffer.append(actor.step())
        steps = client.incr(STEPS)
        if len(buffer) == BUFFER:
            replay.append(buffer, _priorities(learner, buffer, setting))
            buffer.clear()
        while steps > args.replay_frequency * int(client.get(UPDATES)) + args.weight_synchro_frequency:
            time.sleep(SLEEP_S)


def _priorities(learner: OriginalLearner, steps: list[Step], setting: Setting) -> NDArray[np.float32]:
    args = setting.args
    around = args.history_length + args.multi_step - 1
    found: list[NDArray[np.float32]] = []
    for i in range(0, len(steps) - around, PRIORITIES_AT_ONCE):
        part = steps[i : i + PRIORITIES_AT_ONCE + around]
        batch = transitions_of(part, args.history_length, args.multi_step, args.discount)
        found.append(learner.priorities(batch).numpy())
    losses = np.resize(np.concatenate(found), len(steps))  # the last few have no full window: any will do
    return np.asarray(losses**0.2, np.float32)


def sample(redis: RedisConfig, setting: Setting, batches: Queue[Batch]) -> None:
    """Batches for ever."""
    replay = OriginalReplay(make_client(redis), setting, fresh=False)
    generator = np.random.default_rng(setting.args.seed)
    while True:
        batches.put(replay.sample(setting.args.batch_size, BETA, generator))


def learn(redis: RedisConfig, setting: Setting) -> None:
    """One update per `replay_frequency` steps for ever; the replay begins with some random play."""
    args, client = setting.args, make_client(redis)
    replay, learner = OriginalReplay(make_client(redis), setting), OriginalLearner(setting)
    first = steps_of(record(setting, environments=1, steps=BUFFER))
    replay.append(first, np.ones(len(first), np.float32))
    client.mset({UPDATES: 0, STEPS: 0, WEIGHTS: _weights(learner)})
    context = multiprocessing.get_context("spawn")
    batches: Queue[Batch] = context.Queue(QUEUED)
    for target, arguments in ((play, (redis, setting)), (sample, (redis, setting, batches))):
        context.Process(target=target, args=arguments, daemon=True).start()
    for updates in range(1, sys.maxsize):
        while int(client.get(STEPS)) < args.replay_frequency * updates:
            time.sleep(SLEEP_S)
        batch = batches.get()
        losses = learner.update(batch_to_device(batch, torch.device("cpu")))
        replay.update(batch.leaf, losses.numpy())
        client.set(UPDATES, updates)
        if updates * args.replay_frequency % args.weight_synchro_frequency == 0:
            client.set(WEIGHTS, _weights(learner))


def _weights(learner: OriginalLearner) -> bytes:
    file = io.BytesIO()
    torch.save(learner.online.state_dict(), file)
    return file.getvalue()


if __name__ == "__main__":
    socket, spec, seed = sys.argv[1:]
    flags = f"--spec {spec} --memory-capacity {CAPACITY} --learn-start {BUFFER} --seed {seed}"
    learn(RedisConfig(socket, 0), setting_for(flags))
