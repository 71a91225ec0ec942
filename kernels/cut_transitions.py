"""Noting steps of N environments, and cutting n-step transitions from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.choice import compiled_in_use
from kernels.compiled import compiled

Indices = NDArray[np.int64]
Discounts = NDArray[np.float64]


class Steps(NamedTuple):
    """Steps of N environments, each at the time index of the frame that it is taken from; 0 where none is."""

    rewards: NDArray[np.float32]  # [N, T, 2] raw, learned
    ended: NDArray[np.bool_]  # [N, T, 2] terminated, truncated
    acted: NDArray[np.bool_]  # [N, T]
    depth: NDArray[np.uint16]  # [N, T] frames of the episode in the state then


class Streams(NamedTuple):
    """Where each of N environments stands."""

    age: Indices  # [N] steps since the episode's first frame
    carried: NDArray[np.float64]  # [N] the last learned reward of the episode
    next: Indices  # [N] first time index that is in no chunk yet
    ready: Indices  # [N] transitions from there on that are complete


class Rewards(NamedTuple):
    """How a raw reward is clipped and smoothed to be learned from, and how many steps a return sums."""

    history_length: int  # H
    multi_step: int  # n
    clip: float  # 0: not clipped
    smoothing: float  # share of the last step's learned reward in the next


class Taken(NamedTuple):
    """The step that N environments took."""

    rewards: NDArray[np.float64]  # [N] raw
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    acted: NDArray[np.bool_]  # [N] False: the frame ended an episode, no step is taken from it


class Cut(NamedTuple):
    """M transitions of each of R environments, and the frames that they need."""

    start: Indices  # [R] time index of the first frame
    stop: Indices  # [R] behind the last
    tm1: Indices  # [R, M] time index of s_tm1
    t: Indices  # [R, M] of s_t: n steps later, or the episode's end before that
    places: NDArray[np.uint16]  # [R, M, 4] newest frame of s_tm1 and of s_t, depth of s_tm1 and of s_t
    targets: NDArray[np.float32]  # [R, M, 2] n-step return of learned rewards; gamma**k, or 0 at a terminal


def note_steps(steps: Steps, streams: Streams, index: int, taken: Taken, rule: Rewards) -> int:
    """Enter what all environments did at time `index`; returns the most transitions that one has ready.

    A learned reward is clipped, then smoothed by an exponential mean that begins at 0 with each episode.
    """
    return (_note_steps if compiled_in_use() else plain_note_steps)(steps, streams, index, taken, rule)


def cut_transitions(
    steps: Steps, streams: Streams, rows: Indices, transitions: int, discounts: Discounts
) -> Cut:
    """The next complete transitions of some environments.

    Args:
        steps: Of all environments.
        streams: Of all environments; `next` and `ready` move on.
        rows: [R] which environments.
        transitions: M, of each.
        discounts: gamma**k for k = 0 … n.
    """
    cut = _cut_transitions if compiled_in_use() else plain_cut_transitions
    return cut(steps, streams, rows, transitions, discounts)


def plain_note_steps(steps: Steps, streams: Streams, index: int, taken: Taken, rule: Rewards) -> int:
    """`note_steps` in NumPy."""
    reward = np.where(taken.acted, taken.rewards, 0.0)
    learned = np.clip(reward, -rule.clip, rule.clip) if rule.clip else reward
    if rule.smoothing:
        learned = rule.smoothing * streams.carried + (1.0 - rule.smoothing) * learned
    streams.carried[:] = np.where(taken.acted, learned, 0.0)
    steps.acted[:, index] = taken.acted
    steps.depth[:, index] = np.minimum(streams.age + 1, rule.history_length)
    steps.rewards[:, index] = np.stack((reward, streams.carried), axis=1)
    steps.ended[:, index] = np.stack((taken.terminated, taken.truncated), axis=1) & taken.acted[:, None]
    ending = np.minimum(streams.age, rule.multi_step)
    streams.ready[:] += np.where(taken.acted, streams.age >= rule.multi_step, ending)
    streams.age[:] = np.where(taken.acted, streams.age + 1, 0)
    return int(streams.ready.max(initial=0))


def plain_cut_transitions(
    steps: Steps, streams: Streams, rows: Indices, transitions: int, discounts: Discounts
) -> Cut:
    """`cut_transitions` in NumPy."""
    cuts = [_cut_row(steps, streams, n, transitions, discounts) for n in rows]
    return Cut(*map(np.stack, zip(*cuts, strict=True)))


def _cut_row(steps: Steps, streams: Streams, n: int, transitions: int, discounts: Discounts) -> Cut:
    acted, depth = steps.acted[n], steps.depth[n].astype(np.int64)
    tm1 = streams.next[n] + np.flatnonzero(acted[streams.next[n] :])[:transitions]
    ahead = np.minimum(tm1[:, None] + np.arange(len(discounts) - 1), len(acted) - 1)  # [M, n]
    within = np.logical_and.accumulate(acted[ahead], axis=1)
    t, r_t = tm1 + within.sum(axis=1), np.zeros(transitions)
    for step in range(len(discounts) - 1):
        reward = discounts[step] * steps.rewards[n, ahead[:, step], 1]
        r_t = np.where(within[:, step], r_t + reward, r_t)
    discount_t = np.where(steps.ended[n, t - 1, 0], 0.0, discounts[t - tm1])
    start = tm1[0] - depth[tm1[0]] + 1
    places = np.stack((tm1 - start, t - start, depth[tm1], depth[t]), axis=1).astype(np.uint16)
    streams.next[n], streams.ready[n] = tm1[-1] + 1, streams.ready[n] - transitions
    return Cut(start, t[-1] + 1, tm1, t, places, np.stack((r_t, discount_t), axis=1).astype(np.float32))


@compiled
def _note_steps(steps: Steps, streams: Streams, index: int, taken: Taken, rule: Rewards) -> int:
    most = 0
    for n in range(len(taken.acted)):
        age, took = streams.age[n], taken.acted[n]
        steps.acted[n, index] = took
        steps.depth[n, index] = min(age + 1, rule.history_length)
        reward = taken.rewards[n] if took else 0.0
        learned = np.minimum(np.maximum(reward, -rule.clip), rule.clip) if rule.clip else reward
        if rule.smoothing:
            learned = rule.smoothing * streams.carried[n] + (1.0 - rule.smoothing) * learned
        streams.carried[n] = learned if took else 0.0
        steps.rewards[n, index, 0], steps.rewards[n, index, 1] = reward, streams.carried[n]
        steps.ended[n, index, 0] = taken.terminated[n] and took
        steps.ended[n, index, 1] = taken.truncated[n] and took
        # the newest step completes the transition of n steps ago; an episode's end all that are left
        streams.ready[n] += int(age >= rule.multi_step) if took else min(age, rule.multi_step)
        streams.age[n] = age + 1 if took else 0
        most = max(most, streams.ready[n])
    return most


@compiled
def _cut_transitions(
    steps: Steps, streams: Streams, rows: Indices, transitions: int, discounts: Discounts
) -> Cut:
    count = len(rows)
    start, stop = np.empty(count, np.int64), np.empty(count, np.int64)
    tm1, t = np.empty((count, transitions), np.int64), np.empty((count, transitions), np.int64)
    places = np.empty((count, transitions, 4), np.uint16)
    targets = np.empty((count, transitions, 2), np.float32)
    for r in range(count):
        start[r] = _cut(steps, streams, rows[r], discounts, tm1[r], t[r], places[r], targets[r])
        stop[r] = t[r, -1] + 1
    return Cut(start, stop, tm1, t, places, targets)


@compiled
def _cut(
    steps: Steps,
    streams: Streams,
    row: int,
    discounts: Discounts,
    tm1: Indices,
    t: Indices,
    places: NDArray[np.uint16],
    targets: NDArray[np.float32],
) -> int:
    """The n-step returns of one environment; returns the time index of the first frame that they need."""
    acted, depth, multi_step = steps.acted[row], steps.depth[row], len(discounts) - 1
    index, start = streams.next[row], 0
    for i in range(len(tm1)):
        while not acted[index]:
            index += 1
        if i == 0:
            start = index - depth[index] + 1
        k = 1
        while k < multi_step and acted[index + k]:
            k += 1
        r_t = 0.0
        for step in range(k):
            r_t += discounts[step] * steps.rewards[row, index + step, 1]
        tm1[i], t[i] = index, index + k
        places[i, 0], places[i, 1] = tm1[i] - start, t[i] - start
        places[i, 2], places[i, 3] = depth[tm1[i]], depth[t[i]]
        targets[i, 0] = r_t
        # only a termination stops the bootstrap: at a truncation the last state has a value
        targets[i, 1] = 0.0 if steps.ended[row, t[i] - 1, 0] else discounts[k]
        index += 1
    streams.next[row] = index
    streams.ready[row] -= len(tm1)
    return start
