"""From scores of sounds to words: a hidden Markov model of digits in any order, and the word error rate. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recognizer.speech import PHONE_NAMES, PRONUNCIATIONS, WORDS

STATES: Final = 3
"""States per sound: it lasts at least this many frames."""
WORD_COST: Final = 6.0
"""The cost of another word, as a logarithm."""
REJECTED: Final = "?"
REJECT: Final = 1.1
"""Keeps 97 of 100 digits, and rejects 6 of 10 words made of other sounds, and 8 of 10 words heard in pure noise."""
STAY: Final = float(np.log(0.7))
MOVE: Final = float(np.log(0.3))


class Graph(NamedTuple):
    """States of all words, one word after the other; the last word is silence.

    Attributes:
        sounds: (states,) index of the sound that each state scores.
        firsts: (words,) the first state of each.
        lasts: (words,) the last state of each.
    """

    sounds: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]


@cache
def graph() -> Graph:
    """The digits, and silence."""
    words = [*(PRONUNCIATIONS[word] for word in WORDS), ("sil",)]
    sounds = [[PHONE_NAMES.index(name) for name in names for _ in range(STATES)] for names in words]
    lasts = np.cumsum([len(states) for states in sounds]) - 1
    return Graph(np.concatenate(sounds), np.concatenate([[0], lasts[:-1] + 1]), lasts)


def decode(scores: NDArray[np.floating], reject: float = np.inf) -> tuple[str, ...]:
    """The most likely words (Viterbi).

    Args:
        scores: (frames, sounds) log likelihoods, up to a constant per frame.
        reject: A word is REJECTED if its sounds score this much less than the best ones, averaged over its frames.
    """
    states = graph()
    count, silence = len(states.sounds), len(WORDS)
    costs = np.full(len(states.firsts), WORD_COST)
    costs[silence] = 0
    emitted = np.asarray(scores, np.float64)[:, states.sounds]
    best = np.full(count, -np.inf)
    best[states.firsts] = -costs
    best += emitted[0]
    came_from = np.empty((len(emitted), count), np.int32)
    itself = np.arange(count)
    for frame in range(1, len(emitted)):
        moved = np.concatenate([[-np.inf], best[:-1]])
        source = itself - 1
        end = states.lasts[np.argmax(best[states.lasts])]
        moved[states.firsts], source[states.firsts] = best[end] - costs, end
        moved += MOVE
        stays = best + STAY >= moved
        came_from[frame] = np.where(stays, itself, source)
        best = np.where(stays, best + STAY, moved) + emitted[frame]
    state = int(states.lasts[np.argmax(best[states.lasts])])
    found, end = [], len(emitted)
    worse = np.asarray(scores, np.float64).max(1)
    for frame in range(len(emitted) - 1, -1, -1):
        worse[frame] -= emitted[frame, state]
        before = int(came_from[frame, state]) if frame else -1
        if before != state and (before != state - 1 or state in states.firsts):
            word = int(np.searchsorted(states.firsts, state, "right")) - 1
            if word != silence:
                found.append(WORDS[word] if worse[frame:end].mean() < reject else REJECTED)
            end = frame
        state = before
    return tuple(reversed(found))


def word_errors(said: Sequence[str], heard: Sequence[str]) -> int:
    """The smallest number of substituted, added and omitted words that explains ``heard`` (edit distance)."""
    row = list(range(len(heard) + 1))
    for count, word in enumerate(said, 1):
        before, row[0] = row[0], count
        for at, other in enumerate(heard, 1):
            before, row[at] = row[at], min(before + (word != other), row[at] + 1, row[at - 1] + 1)
    return row[-1]


def word_error_rate(said: Sequence[Sequence[str]], heard: Sequence[Sequence[str]]) -> float:
    """Errors in all utterances, per spoken word."""
    return sum(map(word_errors, said, heard)) / sum(map(len, said))
