"""Hashing and bounding written to be read: what the compiled forms are tested against.

SipHash-2-4 is a keyed hash: who does not know the 16 bytes of the key cannot tell its values from random ones.
J.-P. Aumasson and D. J. Bernstein, SipHash: a fast short-input PRF, 2012.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eventide.arrays import Array, Ints

Hashes = NDArray[np.uint64]


def siphash(key: bytes, messages: Sequence[bytes]) -> Hashes:
    """The hash of each message; all those of one length are hashed side by side.

    >>> hex(siphash(bytes(range(16)), [bytes(range(15))])[0])
    '0xa129ca6149be45e5'
    """
    hashes = np.zeros(len(messages), np.uint64)
    lengths = np.array([len(message) for message in messages])
    for length in np.unique(lengths):
        hashes[lengths == length] = _same_length(key, [each for each in messages if len(each) == length])
    return hashes


def rank_message(user: int, step: int, bin_index: int, occurrence: int) -> bytes:
    """What is hashed to rank one event of a user: four whole numbers of eight bytes, the lowest first."""
    return struct.pack("<Qqqq", user, step, bin_index, occurrence)


def _same_length(key: bytes, messages: Sequence[bytes]) -> Hashes:
    length = len(messages[0])
    padded = [message + bytes(7 - length % 8) + bytes([length % 256]) for message in messages]
    words = np.frombuffer(b"".join(padded), "<u8").reshape(len(messages), -1)
    low, high = np.frombuffer(key, "<u8")
    state = [
        np.full(len(messages), word ^ constant)
        for word, constant in zip(
            [low, high, low, high],
            np.frombuffer(b"somepseudorandomlygeneratedbytes", ">u8").astype(np.uint64),
            strict=True,
        )
    ]
    for word in words.T:
        state[3] = state[3] ^ word
        state = _round(_round(state))
        state[0] = state[0] ^ word
    state[2] = state[2] ^ np.uint64(0xFF)
    for _ in range(4):
        state = _round(state)
    hashes: Hashes = state[0] ^ state[1] ^ state[2] ^ state[3]
    return hashes


def _round(state: list[Hashes]) -> list[Hashes]:
    a, b, c, d = state
    a, c = a + b, c + d
    b, d = _rotated(b, 13) ^ a, _rotated(d, 16) ^ c
    a, c = _rotated(a, 32) + d, c + b
    b, d = _rotated(b, 17) ^ c, _rotated(d, 21) ^ a
    return [a, b, _rotated(c, 32), d]


def _rotated(words: Hashes, bits: int) -> Hashes:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def bounded_counts(users: Array, bins: Array, occurrences: Ints, key: bytes, step: int, most: int, size: int) -> Ints:
    """The counts `(size,)` of a step from rows (user, bin, occurrences)."""
    user = np.repeat(users, occurrences)
    bin_index = np.repeat(bins, occurrences)
    occurrence = np.concatenate([np.arange(0), *(np.arange(count) for count in occurrences)])
    messages = [
        rank_message(int(who), step, int(where), int(which))
        for who, where, which in zip(user, bin_index, occurrence, strict=True)
    ]
    order = np.lexsort((siphash(key, messages), user))
    place_of_first = np.searchsorted(user[order], user[order])
    kept = order[np.arange(len(order)) - place_of_first < most]
    return np.bincount(bin_index[kept], minlength=size).astype(np.int64)
