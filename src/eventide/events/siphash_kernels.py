"""SipHash-2-4, compiled, over texts in Arrow's buffers and over four whole numbers.

A keyed hash: who does not know the 16 bytes of the key cannot tell its values from random ones. J.-P. Aumasson and
D. J. Bernstein, SipHash: a fast short-input PRF, 2012.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from eventide.arrays import Array
from eventide.compiling import kernel
from eventide.events.text_kernels import trimmed

_CONSTANTS = (
    np.uint64(0x736F6D6570736575),
    np.uint64(0x646F72616E646F6D),
    np.uint64(0x6C7967656E657261),
    np.uint64(0x7465646279746573),
)


def key_words(key: bytes) -> Array:
    """The two words of a key, as the kernels take them."""
    return np.frombuffer(key, "<u8").astype(np.uint64)


@kernel(nogil=True)
def hash_texts(key, offsets, data):  # type: ignore[no-untyped-def]
    """The hash of each text without its outer blanks, and whether nothing was left of it."""
    size = len(offsets) - 1
    hashes, empty = np.empty(size, np.uint64), np.zeros(size, np.bool_)
    for row in range(size):
        begin, end = trimmed(data, offsets[row], offsets[row + 1])
        empty[row] = begin == end
        hashes[row] = _hash_bytes(key, data, begin, end)
    return hashes, empty


@kernel(nogil=True)
def hash_four(key, first, second, third, fourth):  # type: ignore[no-untyped-def]
    """The hash of four whole numbers, as 32 bytes with the lowest of each first."""
    a, b, c, d = _begin(key)
    for word in (uint64(first), uint64(second), uint64(third), uint64(fourth), uint64(32) << uint64(56)):
        a, b, c, d = _take(a, b, c, d, word)
    return _finish(a, b, c, d)


@kernel(nogil=True)
def _hash_bytes(key, data, begin, end):  # type: ignore[no-untyped-def]
    a, b, c, d = _begin(key)
    place = begin
    while end - place >= 8:
        a, b, c, d = _take(a, b, c, d, _word(data, place, place + 8))
        place += 8
    last = _word(data, place, end) | (uint64((end - begin) & 255) << uint64(56))
    a, b, c, d = _take(a, b, c, d, last)
    return _finish(a, b, c, d)


@kernel(nogil=True, inline="always")
def _word(data, begin, end):  # type: ignore[no-untyped-def]
    word = uint64(0)
    for place in range(begin, end):
        word |= uint64(data[place]) << uint64(8 * (place - begin))
    return word


@kernel(nogil=True, inline="always")
def _begin(key):  # type: ignore[no-untyped-def]
    low, high = key[0], key[1]
    return low ^ _CONSTANTS[0], high ^ _CONSTANTS[1], low ^ _CONSTANTS[2], high ^ _CONSTANTS[3]


@kernel(nogil=True, inline="always")
def _take(a, b, c, d, word):  # type: ignore[no-untyped-def]
    d ^= word
    for _ in range(2):
        a, b, c, d = _round(a, b, c, d)
    return a ^ word, b, c, d


@kernel(nogil=True, inline="always")
def _finish(a, b, c, d):  # type: ignore[no-untyped-def]
    c ^= uint64(0xFF)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@kernel(nogil=True, inline="always")
def _round(a, b, c, d):  # type: ignore[no-untyped-def]
    a, c = a + b, c + d
    b, d = _rotated(b, uint64(13)) ^ a, _rotated(d, uint64(16)) ^ c
    a, c = _rotated(a, uint64(32)) + d, c + b
    b, d = _rotated(b, uint64(17)) ^ c, _rotated(d, uint64(21)) ^ a
    return a, b, _rotated(c, uint64(32)), d


@kernel(nogil=True, inline="always")
def _rotated(word, bits):  # type: ignore[no-untyped-def]
    return (word << bits) | (word >> (uint64(64) - bits))
