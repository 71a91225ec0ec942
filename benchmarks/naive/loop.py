"""Actor, sampler and learner in the seed's manner, each a process, in step 1 : 4 through counters in Redis.

python -m benchmarks.naive.loop <socket> <spec> <seed>
"""

from __future__ import annotations

import io
import multiprocessing
import sys
import time
from multiprocessing.queues import Queue

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.learner import naive_learner
from benchmarks.naive.acting import NaiveActor, transitions_of
from benchmarks.naive.learner import NaiveLearner
from benchmarks.naive.replay import Step
from benchmarks.play import record, setting_for
from benchmarks.replay import BETA, BUFFER, CAPACITY, naive_replay, steps_of
from envs import EnvConfig, make_env
from memory.replay.batch import Batch
from memory.server.connection import RedisConfig, make_client
from wiring import Setting

UPDATES, STEPS, WEIGHTS = "naive:updates", "naive:steps", "naive:weights"
QUEUED = 10
"""Batches that the sampler prepares ahead."""
SLEEP_S = 0.001
PRIORITIES_AT_ONCE = 32


def act(redis: RedisConfig, setting: Setting) -> None:
    """One environment for ever: never further ahead than the interval between weights."""
    torch.set_num_threads(1)
    args, client = setting.args, make_client(redis)
    replay, learner = naive_replay(redis, setting, fresh=False), naive_learner(setting)
    actor = NaiveActor(
        learner, make_env(args.select(EnvConfig), [args.seed]), args.history_length, args.num_quantile_samples
    )
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


def _priorities(learner: NaiveLearner, steps: list[Step], setting: Setting) -> NDArray[np.float32]:
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
    replay, generator = naive_replay(redis, setting, fresh=False), np.random.default_rng(setting.args.seed)
    while True:
        batches.put(replay.sample(setting.args.batch_size, BETA, generator))


def learn(redis: RedisConfig, setting: Setting) -> None:
    """One update per `replay_frequency` steps for ever; all begins with some random play in the replay."""
    args, client = setting.args, make_client(redis)
    replay, learner = naive_replay(redis, setting), naive_learner(setting)
    play = steps_of(record(setting, environments=1, steps=BUFFER))
    replay.append(play, np.ones(len(play), np.float32))
    client.mset({UPDATES: 0, STEPS: 0, WEIGHTS: _weights(learner)})
    context = multiprocessing.get_context("spawn")
    batches: Queue[Batch] = context.Queue(QUEUED)
    for target, arguments in ((act, (redis, setting)), (sample, (redis, setting, batches))):
        context.Process(target=target, args=arguments, daemon=True).start()
    for updates in range(1, sys.maxsize):
        while int(client.get(STEPS)) < args.replay_frequency * updates:
            time.sleep(SLEEP_S)
        batch = batches.get()
        replay.update(batch.leaf, learner.update(batch).numpy())
        client.set(UPDATES, updates)
        if updates * args.replay_frequency % args.weight_synchro_frequency == 0:
            client.set(WEIGHTS, _weights(learner))


def _weights(learner: NaiveLearner) -> bytes:
    file = io.BytesIO()
    torch.save(learner.online.state_dict(), file)
    return file.getvalue()


if __name__ == "__main__":
    socket, spec, seed = sys.argv[1:]
    flags = f"--spec {spec} --memory-capacity {CAPACITY} --learn-start {BUFFER} --seed {seed}"
    learn(RedisConfig(socket, 0), setting_for(flags))
