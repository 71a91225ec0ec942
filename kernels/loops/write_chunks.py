"""Compiled loops of `kernels.write_chunks`: one environment after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.layouts import FARTHEST, Bytes, Cut, Indices, Rewards, Steps, Streams, Taken, Words
from kernels.loops.compiled import compiled

BLOCK = 64
"""Words that are compared before any of them is looked at."""

Discounts = NDArray[np.float64]
Places = NDArray[np.uint32]


@compiled
def note_steps(steps: Steps, streams: Streams, index: int, taken: Taken, rule: Rewards) -> int:
    """One pass over the environments."""
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
def cut_transitions(
    steps: Steps, streams: Streams, rows: Indices, transitions: int, discounts: Discounts
) -> Cut:
    """One transition after the other."""
    count = len(rows)
    start, stop = np.empty(count, np.int64), np.empty(count, np.int64)
    tm1, t = np.empty((count, transitions), np.int64), np.empty((count, transitions), np.int64)
    places = np.empty((count, transitions, 4), np.uint16)
    targets = np.empty((count, transitions, 2), np.float32)
    cut = Cut(start, stop, tm1, t, places, targets)
    for r in range(count):
        _cut_row(steps, streams, rows[r], discounts, cut, r)
    return cut


@compiled
def _cut_row(steps: Steps, streams: Streams, row: int, discounts: Discounts, cut: Cut, r: int) -> None:
    """Row `r` of `cut`, from environment `row`."""
    acted, depth, multi_step = steps.acted[row], steps.depth[row], len(discounts) - 1
    tm1, t, index = cut.tm1[r], cut.t[r], streams.next[row]
    while not acted[index]:
        index += 1
    start = index - depth[index] + 1
    for i in range(len(tm1)):
        while not acted[index]:
            index += 1
        k = 1
        while k < multi_step and acted[index + k]:
            k += 1
        r_t = 0.0
        for step in range(k):
            r_t += discounts[step] * steps.rewards[row, index + step, 1]
        tm1[i], t[i] = index, index + k
        cut.places[r, i, 0], cut.places[r, i, 1] = tm1[i] - start, t[i] - start
        cut.places[r, i, 2], cut.places[r, i, 3] = depth[tm1[i]], depth[t[i]]
        cut.targets[r, i, 0] = r_t
        # only a termination stops the bootstrap: at a truncation the last state has a value
        cut.targets[r, i, 1] = 0.0 if steps.ended[row, t[i] - 1, 0] else discounts[k]
        index += 1
    cut.start[r], cut.stop[r] = start, t[-1] + 1
    streams.next[row] = index
    streams.ready[row] -= len(tm1)


@compiled
def note_changes(frames: Words, newest: Words, words: Words, places: Places, counts: Indices) -> None:
    """Block by block: most blocks of words do not change."""
    whole = frames.shape[1] // BLOCK * BLOCK
    for n in range(len(frames)):
        now, before = frames[n], newest[n]
        for start in range(0, whole, BLOCK):
            difference = now[start] ^ before[start]
            for i in range(start, start + BLOCK):
                difference |= now[i] ^ before[i]
            if difference:
                counts[n] = _note(now, before, start, start + BLOCK, words[n], places[n], counts[n])
        counts[n] = _note(now, before, whole, frames.shape[1], words[n], places[n], counts[n])


@compiled
def _note(now: Words, before: Words, start: int, stop: int, words: Words, places: Places, count: int) -> int:
    for i in range(start, stop):
        if now[i] != before[i]:
            words[count], places[count] = now[i], i
            before[i] = now[i]
            count += 1
    return count


@compiled
def fold(frame: Words, words: Words, places: Places, until: Indices) -> Bytes:
    """One pass over the changes."""
    rolled, behind = frame.copy(), len(until) - 1
    most = until[-1] - until[0] + behind * len(frame) // FARTHEST  # with words that did not change
    stored, low, high = np.empty(most, frame.dtype), np.empty(most, np.uint8), np.empty(most, np.uint8)
    found, gap = 0, np.int64(0)
    for k in range(1, len(until)):
        place = np.int64(0)
        for change in range(until[k - 1], until[k]):
            gap += np.int64(places[change]) - place
            place = np.int64(places[change])
            while gap > FARTHEST:
                gap -= FARTHEST
                stored[found], low[found], high[found] = rolled[(place - gap) % len(frame)], 0xFF, 0xFF
                found += 1
            stored[found], low[found], high[found] = words[change], gap & 0xFF, gap >> 8
            found, gap = found + 1, np.int64(0)
            rolled[place] = words[change]
        gap += len(frame) - place
    return np.concatenate((stored[:found].view(np.uint8), low[:found], high[:found]))
