"""What actors do at every step: note steps and changes of frames, cut n-step transitions, fold frames."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kernels.choice import compiled_as
from kernels.layouts import FARTHEST, Bytes, Cut, Indices, Rewards, Steps, Streams, Taken, Words
from kernels.loops import write_chunks as loops
from kernels.loops.write_chunks import Discounts, Places


@compiled_as(loops.note_steps)
def note_steps(steps: Steps, streams: Streams, index: int, taken: Taken, rule: Rewards) -> int:
    """Enter what all environments did at time `index`; returns the most transitions that one has ready.

    A learned reward is clipped, then smoothed by an exponential mean that begins at 0 with each episode.
    """
    reward = np.where(taken.acted, taken.rewards, 0.0)
    learned = np.clip(reward, -rule.clip, rule.clip) if rule.clip else reward
    if rule.smoothing:
        learned = rule.smoothing * streams.carried + (1.0 - rule.smoothing) * learned
    streams.carried[:] = np.where(taken.acted, learned, 0.0)
    steps.acted[:, index] = taken.acted
    steps.depth[:, index] = np.minimum(streams.age + 1, rule.history_length)
    steps.rewards[:, index] = np.stack((reward, streams.carried), axis=1)
    steps.ended[:, index] = np.stack((taken.terminated, taken.truncated), axis=1) & taken.acted[:, None]
    # the newest step completes the transition of n steps ago; an episode's end all that are left
    ending = np.minimum(streams.age, rule.multi_step)
    streams.ready[:] += np.where(taken.acted, streams.age >= rule.multi_step, ending)
    streams.age[:] = np.where(taken.acted, streams.age + 1, 0)
    return int(streams.ready.max(initial=0))


@compiled_as(loops.cut_transitions)
def cut_transitions(
    steps: Steps, streams: Streams, rows: Indices, transitions: int, discounts: Discounts
) -> Cut:
    """The next complete transitions of some environments, with n-step returns of learned rewards.

    r_t = sum of gamma^j r_j over the k <= n steps up to s_t, and discount_t = gamma^k; 0 at a terminal.

    Args:
        steps: Of all environments.
        streams: Of all environments; `next` and `ready` move on.
        rows: [R] which environments.
        transitions: M, of each.
        discounts: gamma**k for k = 0 … n.
    """
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
    # only a termination stops the bootstrap: at a truncation the last state has a value
    discount_t = np.where(steps.ended[n, t - 1, 0], 0.0, discounts[t - tm1])
    start = tm1[0] - depth[tm1[0]] + 1
    places = np.stack((tm1 - start, t - start, depth[tm1], depth[t]), axis=1).astype(np.uint16)
    streams.next[n], streams.ready[n] = tm1[-1] + 1, streams.ready[n] - transitions
    return Cut(start, t[-1] + 1, tm1, t, places, np.stack((r_t, discount_t), axis=1).astype(np.float32))


@compiled_as(loops.note_changes)
def note_changes(frames: Words, newest: Words, words: Words, places: Places, counts: Indices) -> None:
    """Note where frames of N environments differ from those before.

    Args:
        frames: [N, W] in words.
        newest: [N, W] those before, which become `frames`.
        words: [N, C] that changed, in order; new ones go behind the first `counts`.
        places: [N, C] which words of a frame they are.
        counts: [N] how many there are, brought up to date.
    """
    for n in range(len(frames)):
        changed = np.flatnonzero(frames[n] != newest[n])
        noted = slice(counts[n], counts[n] + len(changed))
        words[n, noted], places[n, noted] = frames[n, changed], changed
        newest[n] = frames[n]
        counts[n] += len(changed)


@compiled_as(loops.fold)
def fold(frame: Words, words: Words, places: Places, until: Indices) -> Bytes:
    """The changes of some frames as they are stored: words, low bytes of their gaps, high ones.

    Args:
        frame: [W] the frame before them.
        words: [C] that changed.
        places: [C] which words of a frame they are.
        until: [F] the changes of frame k = 1 … F-1 are those from until[k - 1] to before until[k].
    """
    frames = np.repeat(frame[None], len(until), axis=0)  # [F, W]
    for k in range(1, len(until)):
        changes = slice(until[k - 1], until[k])
        frames[k:, places[changes]] = words[changes]
    changed = np.flatnonzero(frames[1:] != frames[:-1])  # words from the second frame's first on
    before = np.concatenate(([0], changed)).astype(np.int64)
    fillers = [np.arange(start + FARTHEST, end, FARTHEST) for start, end in pairwise(before)]
    stored = np.sort(np.concatenate([changed, *fillers]))
    gaps = np.diff(stored, prepend=0).astype("<u2").view(np.uint8).reshape(-1, 2)
    return np.concatenate((frames[1:].reshape(-1)[stored].view(np.uint8), gaps[:, 0], gaps[:, 1]))
