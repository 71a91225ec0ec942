"""Noting steps of N environments and cutting transitions from them: compiled, one environment at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.compiled import compiled


class Steps(NamedTuple):
    """Of N environments, each at the moment it is taken from; 0 where none is."""

    rewards: NDArray[np.float32]  # [N, T, 2] raw, learned
    ended: NDArray[np.bool_]  # [N, T, 2] terminated, truncated
    acted: NDArray[np.bool_]  # [N, T]
    depth: NDArray[np.uint16]  # [N, T] frames of the episode in the state then


class Streams(NamedTuple):
    """Where each of N environments stands."""

    age: NDArray[np.int64]  # [N] steps since the episode's first frame
    carried: NDArray[np.float64]  # [N] the last learned reward of the episode
    next: NDArray[np.int64]  # [N] first moment that is in no chunk yet
    ready: NDArray[np.int64]  # [N] transitions from there on that are complete


@compiled
def note_steps(
    steps: Steps,
    streams: Streams,
    moment: int,
    rewards: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    acted: NDArray[np.bool_],
    history_length: int,
    multi_step: int,
    reward_clip: float,
    reward_smoothing: float,
) -> int:
    """The next moment of all environments, [N] each; returns the most transitions that one has ready.

    A learned reward is clipped, then smoothed by an exponential mean that begins at 0 with each episode.
    """
    most = 0
    for n in range(len(acted)):
        age, took = streams.age[n], acted[n]
        steps.acted[n, moment] = took
        steps.depth[n, moment] = min(age + 1, history_length)
        reward = rewards[n] if took else 0.0
        learned = np.minimum(np.maximum(reward, -reward_clip), reward_clip) if reward_clip else reward
        if reward_smoothing:
            learned = reward_smoothing * streams.carried[n] + (1.0 - reward_smoothing) * learned
        streams.carried[n] = learned if took else 0.0
        steps.rewards[n, moment, 0], steps.rewards[n, moment, 1] = reward, streams.carried[n]
        steps.ended[n, moment, 0], steps.ended[n, moment, 1] = terminated[n] and took, truncated[n] and took
        # the newest moment completes the transition of n steps ago, or all that are left of an episode
        streams.ready[n] += int(age >= multi_step) if took else min(age, multi_step)
        streams.age[n] = age + 1 if took else 0
        most = max(most, streams.ready[n])
    return most


@compiled
def cut_transitions(
    steps: Steps,
    streams: Streams,
    actions: NDArray[np.uint8],
    rows: NDArray[np.int64],
    transitions: int,
    discounts: NDArray[np.float64],
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float32],
    NDArray[np.uint8],
    NDArray[np.int64],
]:
    """The next complete transitions of each of the environments `rows` [R], as `memory.chunks.step_log.Cut`;
    `actions` [N, T, bytes]; `discounts`: gamma**k for k = 0 … n.
    """
    count = len(rows)
    start, stop = np.empty(count, np.int64), np.empty(count, np.int64)
    tm1, t = np.empty((count, transitions), np.int64), np.empty((count, transitions), np.int64)
    places = np.empty((count, transitions, 4), np.uint16)
    targets = np.empty((count, transitions, 2), np.float32)
    for r in range(count):
        start[r] = _cut(steps, streams, rows[r], discounts, tm1[r], t[r], places[r], targets[r])
        stop[r] = t[r, -1] + 1
    frame_bytes, bytes_each = 2 * 4 + 2, 4 * 2 + actions.shape[2] + 2 * 4
    sizes = (stop - start) * frame_bytes + transitions * bytes_each
    columns = np.empty((count, sizes.max()), np.uint8)
    for r in range(count):
        row, first, end, at = rows[r], start[r], stop[r], 0
        at = _put(columns[r], at, steps.rewards[row, first:end])
        at = _put(columns[r], at, steps.ended[row, first:end])
        at = _put(columns[r], at, places[r])
        for i in range(transitions):
            at = _put(columns[r], at, actions[row, tm1[r, i]])
        _put(columns[r], at, targets[r])
    return start, stop, tm1, t, targets, columns, sizes


@compiled
def _put(target: NDArray[np.uint8], at: int, values: NDArray[Any]) -> int:
    data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    target[at : at + len(data)] = data
    return at + len(data)


@compiled
def _cut(
    steps: Steps,
    streams: Streams,
    row: int,
    discounts: NDArray[np.float64],
    tm1: NDArray[np.int64],
    t: NDArray[np.int64],
    places: NDArray[np.uint16],
    targets: NDArray[np.float32],
) -> int:
    """Those of one environment; returns the first moment that they need."""
    acted, depth, multi_step = steps.acted[row], steps.depth[row], len(discounts) - 1
    moment, start = streams.next[row], 0
    for i in range(len(tm1)):
        while not acted[moment]:
            moment += 1
        if i == 0:
            start = moment - depth[moment] + 1
        k = 1
        while k < multi_step and acted[moment + k]:
            k += 1
        r_t = 0.0
        for step in range(k):
            r_t += discounts[step] * steps.rewards[row, moment + step, 1]
        tm1[i], t[i] = moment, moment + k
        places[i, 0], places[i, 1] = tm1[i] - start, t[i] - start
        places[i, 2], places[i, 3] = depth[tm1[i]], depth[t[i]]
        targets[i, 0] = r_t
        targets[i, 1] = 0.0 if steps.ended[row, t[i] - 1, 0] else discounts[k]
        moment += 1
    streams.next[row] = moment
    streams.ready[row] -= len(tm1)
    return start
