"""Exact random numbers from random bytes: biased coins, discrete Laplace draws and binomial counts.

Promises that every result has exactly its stated distribution, given independent uniform bytes: no floating point is
involved, probabilities are certified to every binary digit that is looked at, and no random byte is used twice.

Why so few coins are enough. Let G be geometric, P(G = g) proportional to q^g with q = exp(-1 / scale). Written in
binary, q^g is a product with one factor per digit of g, so the digits of G are independent, and digit k is 1 with
probability q^(2^k) / (1 + q^(2^k)). The same holds from any digit on: floor(G / 2^K) is geometric with ratio q^(2^K)
and independent of the digits below K.

A discrete Laplace draw x, with P(x) proportional to q^|x|, is not 0 with probability 2 q / (1 + q). If so, its sign is
fair and |x| - 1 is such a G: q^|x| is q times q^(|x| - 1). So one coin, one bit and one G are a draw.

Where many draws are wanted at once, the lowest digits are not tossed one by one. Those that are about even make a
number v, and all together have P(v < n) = (1 - q^n) / (1 - q^(2^m)). Two random bytes say in which of 2^16 cells of
[0, 1) a uniform number lies, and a table says which v that is; only in cells with such a border further bytes decide,
as for a coin.

The number of coins follows from the scale alone, so the time of a draw hardly depends on its value (a tie, in about
one coin of 256, or a border, in at most one lookup of 256, costs a little more). The time of `binomial` grows with the
counts it thins.
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
MANY = 1 << 15  # draws for which a table of digits is worth its making, a third of a millisecond
TABLES_KEPT = 32  # of 130 kilobytes each
TABLE_BYTES = 2  # that a lookup takes
MOST_EVEN, EVEN = 8, 64  # digits in a table at the most; each is 1 with a probability of at least EVEN / 256


class Points:
    """Numbers p < 1, below which a uniform number lies or not.

    `expansions(bits)` gives floor(p * 2^bits) for each p, for every `bits` >= 64. Digits are compared from the top: the
    first bits that differ from p's settle it, and only where they are equal are more drawn.
    """

    def __init__(self, expansions: Expansions, first_bits: int) -> None:
        self.expansions, self._in_hand = expansions, first_bits + 64
        prefixes = expansions(self._in_hand)
        self.first = np.array([prefix >> 64 for prefix in prefixes])
        self.next_word = np.array([prefix % 2**64 for prefix in prefixes], np.uint64)

    def __len__(self) -> int:
        return len(self.next_word)

    def settle(self, which: Ints, entropy: Entropy) -> Bools:
        """Whether uniform numbers lie below these points, from which their first bits do not differ."""
        drawn = np.frombuffer(entropy(8 * which.size), np.uint64)
        wanted = self.next_word[which]
        below = drawn < wanted
        for tie in np.flatnonzero(drawn == wanted):
            below[tie] = self.settle_one(int(which[tie]), entropy, self._in_hand)
        return below

    def settle_one(self, which: int, entropy: Entropy, settled: int = 0) -> bool:
        """The same for one point and a number whose first `settled` bits were equal, 64 bits at a time."""
        while True:
            settled += 64
            drawn = int.from_bytes(entropy(8), "big")
            wanted = self.expansions(settled)[which] % 2**64
            if drawn != wanted:
                return drawn < wanted


class Coins(Points):
    """A column of independent coins, with the probabilities p."""

    def __init__(self, expansions: Expansions) -> None:
        super().__init__(expansions, first_bits=8)
        self.first_byte = self.first.astype(np.uint8)[:, None]

    def toss(self, count: int, entropy: Entropy) -> Bools:
        """Toss every coin `count` times: heads or not in an array (coins, count). One byte is nearly always enough."""
        drawn = np.frombuffer(entropy(len(self) * count), np.uint8).reshape(len(self), count)
        heads = drawn < self.first_byte
        ties = np.flatnonzero(drawn == self.first_byte)
        if ties.size:
            heads.reshape(-1)[ties] = self.settle(ties // count, entropy)
        return heads


class EvenDigits:
    """The lowest digits of geometric numbers, drawn together.

    Each digit is 1 with a probability of at least 1/4, so each number that they make has one of at least 1/3000, more
    than twenty cells of the table: no cell holds two borders.
    """

    def __init__(self, numerator: int, charge: int, digits: int) -> None:
        self.digits = digits
        self._borders = Points(partial(border_expansions, numerator, charge, digits), 8 * TABLE_BYTES)
        cells = self._borders.first
        self._table = np.searchsorted(cells, np.arange(1 << 8 * TABLE_BYTES)).astype(np.int16)
        self._table[cells] = ~self._table[cells]  # this number or the next one

    def draw(self, count: int, entropy: Entropy) -> Array:
        """`count` independent numbers."""
        numbers = self._table.take(np.frombuffer(entropy(TABLE_BYTES * count), np.uint16))
        ties = np.flatnonzero(numbers < 0)
        if ties.size:
            borders = ~numbers[ties].astype(np.int64)
            numbers[ties] = borders + ~self._borders.settle(borders, entropy)
        return numbers


def laplace_expansions(numerator: int, charge: int, bits: int) -> list[int]:
    """floor(p * 2^bits), `bits` >= 64, of the coins of a draw of scale numerator / charge.

    First whether it is not 0; then the coins of a geometric number: one for each digit below K, the first digit with
    p < 2^-64, and last the coin q^(2^K) of the digits from K on.
    """
    return _certain(partial(_certified, numerator, charge, bits))


def border_expansions(numerator: int, charge: int, digits: int, bits: int) -> list[int]:
    """floor(P(v < n) * 2^bits) for the lowest digits v of a geometric number, for n = 1, 2, ... 2^digits - 1."""
    return _certain(partial(_certified_borders, numerator, charge, digits, bits))


def _certain(attempt: Callable[[int], list[int] | None]) -> list[int]:
    """What both ends of an interval around each probability agree on, with as many guard bits as that takes.

    A rational power of e is transcendental, and so are these probabilities: more bits always make the ends agree.
    """
    guard = 8
    while (expansions := attempt(guard)) is None:
        guard *= 2
    return expansions


def _certified(numerator: int, charge: int, bits: int, guard: int) -> list[int] | None:
    """The expansions of a draw's coins, or None where an interval is too wide to tell.

    Each squaring doubles the interval at most: `precision` allows for all of them, `guard` for the first interval.
    """
    magnitude = charge.bit_length() - numerator.bit_length()  # 2^(magnitude-1) < 1 / scale < 2^(magnitude+1)
    precision = bits + max(0, magnitude + 9) + max(0, 7 - magnitude) + guard
    one = 1 << precision
    low, high = _ratio(numerator, charge, precision)
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


def _certified_borders(numerator: int, charge: int, digits: int, bits: int, guard: int) -> list[int] | None:
    """The expansions of (1 - q^n) / (1 - q^(2^digits)), or None where an interval is too wide to tell.

    1 - q is about 1 / scale, so as many bits as the scale has are lost.
    """
    precision = bits + digits + 2 * max(0, numerator.bit_length() - charge.bit_length()) + guard
    one = 1 << precision
    powers = [ratio := _ratio(numerator, charge, precision)]
    for _ in range((1 << digits) - 1):
        low, high = powers[-1]
        powers.append((low * ratio[0] >> precision, -(-high * ratio[1] >> precision)))
    least, most = powers.pop()
    below = [((one - high) << bits) // (one - least) for _, high in powers]
    return below if below == [((one - low) << bits) // (one - most) for low, _ in powers] else None


def _ratio(numerator: int, charge: int, precision: int) -> tuple[int, int]:
    """Integers on either side of 2^precision * q, of a draw of scale numerator / charge."""
    halvings = max(0, charge.bit_length() - numerator.bit_length() + 9)
    low, high = _exponential(charge, numerator << halvings, precision)
    for _ in range(halvings):
        low, high = _squared(low, high, precision)
    return low, high


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
    scale = numerator // shared, charge // shared
    coins, even = _coins_and_table(*scale) if count >= MANY else (_laplace_coins(*scale), None)
    draws = np.empty(count, np.int64)
    size = BLOCK // (len(coins) + (TABLE_BYTES if even else 0))
    for begin in range(0, count, size):
        block = draws[begin : begin + size]
        heads = coins.toss(block.size, entropy)
        signs = np.unpackbits(np.frombuffer(entropy(-(-block.size // 8)), np.uint8), count=block.size).view(np.int8)
        signs += signs - 1  # from 0 or 1 to -1 or 1
        signs *= heads[0].view(np.int8)
        block[:] = _geometric(coins, heads, entropy)
        if even:
            block <<= even.digits
            block += even.draw(block.size, entropy)
        block += 1
        block *= signs
    return draws


@lru_cache(SCALES_KEPT)
def _laplace_coins(numerator: int, charge: int) -> Coins:
    return Coins(partial(laplace_expansions, numerator, charge))


@lru_cache(TABLES_KEPT)
def _coins_and_table(numerator: int, charge: int) -> tuple[Coins, EvenDigits | None]:
    """The digits that are about even in a table, if they are more than it has bytes, and coins for all others."""
    coins = _laplace_coins(numerator, charge)
    even = min(MOST_EVEN, int(np.count_nonzero(coins.first[1:-1] >= EVEN)))
    if even <= TABLE_BYTES:
        return coins, None

    def others(bits: int) -> list[int]:
        not_zero, *digits = coins.expansions(bits)
        return [not_zero, *digits[even:]]

    return Coins(others), EvenDigits(numerator, charge, even)


def _geometric(coins: Coins, heads: Bools, entropy: Entropy) -> Array:
    """Geometric numbers from tossed coins: those behind the first are their digits, the last that of all far digits."""
    beyond = np.flatnonzero(heads[-1])
    numbers = _from_digits(heads[1:].view(np.uint8))
    if beyond.size:  # hardly ever: the coin is about 2^-64 or less
        numbers = numbers.astype(np.int64)
        for index in beyond:
            while coins.settle_one(len(coins) - 1, entropy):
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
