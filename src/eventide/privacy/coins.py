"""Exact random numbers from random bytes: biased coins, discrete Laplace draws and binomial counts.

Promises that every result has exactly its stated distribution, given independent uniform bytes: no floating point is
involved, probabilities are certified to every binary digit that is looked at, and no random byte is used twice.

Why so few coins are enough. Let G be geometric, P(G = g) proportional to q^g with q = exp(-1 / scale). Written in
binary, q^g is a product with one factor per digit of g, so the digits of G are independent, and digit k is 1 with
probability q^(2^k) / (1 + q^(2^k)). The same holds from any digit on: floor(G / 2^K) is geometric with ratio q^(2^K)
and independent of the digits below K.

A discrete Laplace draw x, with P(x) proportional to q^|x|, is not 0 with probability 2 q / (1 + q). If so, its sign is
fair and |x| - 1 is such a G: q^|x| is q times q^(|x| - 1). So one coin, one bit and one G are a draw.

The number of coins follows from the scale alone, so the time of a draw hardly depends on its value (a tie, in about
one coin of 256, costs a little more). The time of `binomial` grows with the counts it thins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from eventide.arrays import Array, Bools, Ints

Entropy = Callable[[int], bytes]
Expansions = Callable[[int], list[int]]

BLOCK = 1 << 18  # random bytes in hand at a time: bounds the memory and stays inside a processor's cache
SCALES_KEPT = 512  # about a kilobyte each; an endless stream may meet a new scale at every step


class Coins:
    """A column of independent coins.

    `expansions(bits)` gives floor(p * 2^bits) for the probability p < 1 of each coin, for every `bits` >= 64.
    """

    def __init__(self, expansions: Expansions) -> None:
        prefixes = expansions(72)
        self.expansions = expansions
        self.first_byte = np.array([prefix >> 64 for prefix in prefixes], np.uint8)[:, None]
        self.next_word = np.array([prefix % 2**64 for prefix in prefixes], np.uint64)

    def __len__(self) -> int:
        return len(self.next_word)

    def toss(self, count: int, entropy: Entropy) -> Bools:
        """Toss every coin `count` times: heads or not in an array (coins, count).

        Heads is when a uniform number lies below p. Comparing digits from the top, the first byte that differs
        from p's settles it; only where it is equal are more bytes drawn.
        """
        drawn = np.frombuffer(entropy(len(self) * count), np.uint8).reshape(len(self), count)
        heads = drawn < self.first_byte
        ties = np.flatnonzero(drawn == self.first_byte)
        if ties.size:
            heads.reshape(-1)[ties] = self._settle(ties // count, entropy)
        return heads

    def _settle(self, coins: Ints, entropy: Entropy) -> Bools:
        """Toss on for these coins, whose first byte was equal."""
        drawn = np.frombuffer(entropy(8 * coins.size), np.uint64)
        wanted = self.next_word[coins]
        heads = drawn < wanted
        for tie in np.flatnonzero(drawn == wanted):
            heads[tie] = self.toss_one(int(coins[tie]), entropy, settled=72)
        return heads

    def toss_one(self, coin: int, entropy: Entropy, settled: int = 0) -> bool:
        """Toss one coin whose first `settled` bits were equal, 64 bits at a time until they differ."""
        while True:
            settled += 64
            drawn = int.from_bytes(entropy(8), "big")
            wanted = self.expansions(settled)[coin] % 2**64
            if drawn != wanted:
                return drawn < wanted


def laplace_expansions(numerator: int, charge: int, bits: int) -> list[int]:
    """floor(p * 2^bits), `bits` >= 64, of the coins of a draw of scale numerator / charge.

    First whether it is not 0; then the coins of a geometric number: one for each digit below K, the first digit with
    p < 2^-64, and last the coin q^(2^K) of the digits from K on.
    Both ends of an interval around p must agree. A power of e is irrational, so more precision always makes them.
    """
    guard = 8
    while (expansions := _certified(numerator, charge, bits, guard)) is None:
        guard *= 2
    return expansions


def _certified(numerator: int, charge: int, bits: int, guard: int) -> list[int] | None:
    """The expansions as above, or None where an interval is too wide to tell.

    Each squaring doubles the interval at most: `precision` allows for all of them, `guard` for the first interval.
    """
    magnitude = charge.bit_length() - numerator.bit_length()  # 2^(magnitude-1) < 1 / scale < 2^(magnitude+1)
    halvings = max(0, magnitude + 9)
    precision = bits + halvings + max(0, 7 - magnitude) + guard
    one = 1 << precision
    low, high = _exponential(charge, numerator << halvings, precision)
    for _ in range(halvings):
        low, high = _squared(low, high, precision)
    not_zero = (low << bits + 1) // (one + low)
    if not_zero != (high << bits + 1) // (one + high):
        return None
    expansions: list[int] = [not_zero]
    while (digit := (low << bits) // (one + low)) == (high << bits) // (one + high):
        if digit >> (bits - 64) == 0:
            far = low >> (precision - bits)
            return [*expansions, far] if far == high >> (precision - bits) else None
        expansions.append(digit)
        low, high = _squared(low, high, precision)
    return None


def _squared(low: int, high: int, precision: int) -> tuple[int, int]:
    return low * low >> precision, -(-high * high >> precision)


def _exponential(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Integers on either side of 2^precision * exp(-x) for x = numerator / denominator < 1/256.

    A term is rounded down and inherits x / order of its predecessor's error, so it is less than 2 too small. So is
    the first term left out, and it bounds the alternating rest.
    """
    total = term = 1 << precision
    order = 0
    while term:
        order += 1
        term = term * numerator // (denominator * order)
        total += -term if order % 2 else term
    error = 2 * order + 2
    return total - error, total + error


def laplace(numerator: int, charge: int, count: int, entropy: Entropy) -> Ints:
    """`count` independent discrete Laplace draws of scale numerator / charge, at most 10^16."""
    shared = math.gcd(numerator, charge)
    coins = _laplace_coins(numerator // shared, charge // shared)
    draws = np.empty(count, np.int64)
    size = BLOCK // len(coins)
    for begin in range(0, count, size):
        block = draws[begin : begin + size]
        heads = coins.toss(block.size, entropy)
        signs = np.unpackbits(np.frombuffer(entropy(-(-block.size // 8)), np.uint8), count=block.size).view(np.int8)
        signs += signs - 1  # from 0 or 1 to -1 or 1
        signs *= heads[0].view(np.int8)
        block[:] = _geometric(coins, heads, entropy)
        block += 1
        block *= signs
    return draws


@lru_cache(SCALES_KEPT)
def _laplace_coins(numerator: int, charge: int) -> Coins:
    return Coins(partial(laplace_expansions, numerator, charge))


def _geometric(coins: Coins, heads: Bools, entropy: Entropy) -> Array:
    """Geometric numbers from tossed coins: those behind the first are their digits, the last that of all far digits."""
    beyond = np.flatnonzero(heads[-1])
    numbers = _from_digits(heads[1:].view(np.uint8))
    if beyond.size:  # hardly ever: the coin is about 2^-64 or less
        numbers = numbers.astype(np.int64)
        for index in beyond:
            while coins.toss_one(len(coins) - 1, entropy):
                numbers[index] += 1 << len(coins) - 2
    return numbers


def _from_digits(digits: Array) -> Array:
    """The numbers whose binary digits, lowest first, are the rows; in the narrowest type. Overwrites `digits`.

    Neighbouring rows are joined in rounds: digits to pairs, pairs to fours, and so on, each round on half as many rows.
    """
    width = 1
    while len(digits) > 1:
        low, high = digits[::2], digits[1::2]
        if 2 * width > 8 * low.itemsize:
            low, high = (rows.astype(f"u{2 * low.itemsize}") for rows in (low, high))
        low[: len(high)] += high * low.dtype.type(1 << width)
        digits, width = low, 2 * width
    return np.ravel(digits)


def binomial(counts: Ints, percent: Ints, entropy: Entropy) -> Ints:
    """How many of `counts` events survive when each is kept with probability percent / 100, by tossing for each."""
    shares = np.unique(percent)
    counts, percent = np.broadcast_arrays(counts, percent)
    kept = np.where(percent == 100, counts, 0)
    for share in shares[(shares > 0) & (shares < 100)]:
        here = percent == share
        kept[here] = _thinned(counts[here], _percent_coin(int(share)), entropy)
    return kept


@lru_cache(101)
def _percent_coin(percent: int) -> Coins:
    return Coins(lambda bits: [(percent << bits) // 100])


def _thinned(counts: Ints, coin: Coins, entropy: Entropy) -> Ints:
    """Heads among each cell's tosses; the cells' events stand in one long row that is tossed a block at a time."""
    ends = np.cumsum(counts)
    total = int(counts.sum())
    kept_until = np.zeros_like(ends)
    kept = 0
    for begin in range(0, total, BLOCK):
        heads = coin.toss(min(BLOCK, total - begin), entropy)[0]
        running = kept + np.cumsum(heads, dtype=np.int64)
        ending = slice(*np.searchsorted(ends, [begin, begin + heads.size], side="right"))
        kept_until[ending] = running[ends[ending] - begin - 1]
        kept = running[-1]
    return np.diff(kept_until, prepend=0)
