"""Coins: certified against oracles of high precision, and their rare paths by scripted bytes."""

import math
import random
import ssl
import sys
import tracemalloc
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from eventide.privacy import coins

# scale = numerator / charge: 10^-9, 0.1, 1, 3.7, 120, 7.1... of two primes, 10^6, 10^16
SCALES = [(1, 10**9), (1, 10), (1, 1), (37, 10), (120, 1), (999_999_937, 140_737_481), (10**6, 1), (10**16, 1)]


class Script:
    """An entropy source that plays back its lines and checks that each is as long as the bytes asked for."""

    def __init__(self, *lines):
        self.lines = list(lines)

    def __call__(self, count):
        line = self.lines.pop(0)
        assert len(line) == count
        return line


def no_entropy(count):
    raise AssertionError("nothing should be drawn here")


def word(number):
    return number.to_bytes(8, sys.byteorder)


def decimal_expansions(numerator, charge, bits):
    """The expansions by decimal arithmetic to 200 digits."""
    context = Context(prec=200, Emin=-(10**12), Emax=10**12)
    ratio = context.divide(Decimal(charge), Decimal(numerator))

    def prefix(power, extra):
        exponential = context.exp(context.multiply(Decimal(-(2**power)), ratio))
        probability = context.divide(exponential, context.add(Decimal(extra), exponential)) if extra else exponential
        return math.floor(context.multiply(probability, Decimal(2**bits)))

    digits = []
    while (digit := prefix(len(digits), 1)) >= 2 ** (bits - 64):
        digits.append(digit)
    exponential = context.exp(context.minus(ratio))
    not_zero = context.divide(context.multiply(2, exponential), context.add(1, exponential))
    return [math.floor(context.multiply(not_zero, Decimal(2**bits))), *digits, prefix(len(digits), 0)]


@pytest.mark.parametrize("bits", [64, 72, 136, 400])
@pytest.mark.parametrize(("numerator", "charge"), SCALES)
def test_expansions_are_those_of_decimal_arithmetic(numerator, charge, bits):
    assert coins.laplace_expansions(numerator, charge, bits) == decimal_expansions(numerator, charge, bits)


def test_expansions_of_many_scales_are_those_of_decimal_arithmetic():
    pick = random.Random(20)
    for _ in range(300):
        numerator, charge = pick.randint(1, 10 ** pick.randint(1, 16)), pick.randint(1, 10 ** pick.randint(1, 15))
        assert coins.laplace_expansions(numerator, charge, 72) == decimal_expansions(numerator, charge, 72)


@pytest.mark.parametrize(("numerator", "charge"), [(1, 1), (37, 10), (3, 7)])
def test_expansions_lie_within_rational_bounds(numerator, charge):
    """Partial sums of e^x in exact fractions enclose each probability, with no rounding anywhere."""
    not_zero, *expansions = coins.laplace_expansions(numerator, charge, 136)
    assert not_zero == coins.laplace_expansions(numerator, charge, 137)[1]  # twice the first digit's probability
    for digit, expansion in enumerate(expansions[:-1]):
        x = Fraction(charge * 2**digit, numerator)
        term, below = Fraction(1), Fraction(0)
        for order in range(1, 400):
            below += term
            term *= x / order
        low, high = 1 / (1 + below + 2 * term), 1 / (1 + below)
        assert math.floor(low * 2**136) == expansion == math.floor(high * 2**136)


@pytest.mark.parametrize(("numerator", "charge"), [(4340805565708, 5), (4210876099, 79873113)])
def test_an_undecided_prefix_is_settled_with_more_precision(numerator, charge):
    assert coins._certified(numerator, charge, 72, guard=8) is None
    assert coins.laplace_expansions(numerator, charge, 72) == decimal_expansions(numerator, charge, 72)


@pytest.mark.parametrize(("scale", "digits"), [((1, 10**9), 0), ((1, 1), 6), ((120, 1), 13), ((10**16, 1), 59)])
def test_digits_end_where_the_probability_falls_below_two_to_the_minus_64(scale, digits):
    assert len(coins.laplace_expansions(*scale, 72)) == digits + 2


def test_coins_make_a_geometric_number_and_a_discrete_laplace_draw():
    """The product over the digits of g is (1 - q) q^g, for every g below the far digits; and so of a draw 1 + g."""
    not_zero, *digits, far = (expansion / 2**200 for expansion in coins.laplace_expansions(37, 10, 200))
    q = math.exp(-10 / 37)
    at_zero = (1 - q) / (1 + q)
    assert 1 - not_zero == pytest.approx(at_zero, rel=1e-12)
    for g in range(2 ** len(digits)):
        product = math.prod(p if g >> k & 1 else 1 - p for k, p in enumerate(digits))
        assert (1 - far) * product == pytest.approx((1 - q) * q**g, rel=1e-12)
        assert not_zero / 2 * (1 - far) * product == pytest.approx(at_zero * q ** (1 + g), rel=1e-12)


def test_a_draw_is_a_coin_a_bit_and_a_geometric_number():
    """At scale 1: four draws, two of them not 0, with the digits 1 0 1 and 0 1 1 of 5 and 6, lowest first."""
    drawn = np.full((8, 4), 255, np.uint8)
    drawn[0, [1, 3]] = 0
    drawn[[1, 3], 1] = drawn[[2, 3], 3] = 0
    drawn[1, 0] = 0  # a digit of a draw that is 0
    script = Script(drawn.tobytes(), bytes([0b0001_0000]))
    assert coins.laplace(1, 1, 4, script).tolist() == [0, -6, 0, 7]
    assert not script.lines


def test_a_coin_compares_a_byte_then_a_word_then_further_words():
    prefix = coins.laplace_expansions(1, 1, 136)[1]
    byte, middle, deep = prefix >> 128, (prefix >> 64) % 2**64, prefix % 2**64
    coin = coins.Coins(lambda bits: coins.laplace_expansions(1, 1, bits)[1:2])

    assert coin.toss(256, Script(bytes(range(256)), word(middle - 1)))[0].tolist() == [i <= byte for i in range(256)]
    assert coin.toss(256, Script(bytes(range(256)), word(middle + 1)))[0].tolist() == [i < byte for i in range(256)]
    for step, heads in ((-1, True), (1, False)):
        script = Script(bytes([byte]), word(middle), (deep + step).to_bytes(8, "big"))
        assert coin.toss(1, script)[0, 0] == heads
        assert not script.lines


def test_each_tie_is_settled_for_its_own_coin_and_toss():
    column = coins.Coins(lambda bits: coins.laplace_expansions(10, 1, bits))
    ties = np.full((len(column), 3), 255, np.uint8)
    ties[2, 1], ties[3, 0], ties[3, 2] = column.first_byte[2, 0], column.first_byte[3, 0], column.first_byte[3, 0]
    next_two, next_three = int(column.next_word[2]), int(column.next_word[3])
    heads = column.toss(3, Script(ties.tobytes(), word(next_two - 1) + word(next_three + 1) + word(next_three - 1)))
    assert np.argwhere(heads).tolist() == [[2, 1], [3, 2]]


def test_far_digits_are_tossed_until_the_first_tail():
    """At scale 1 the digits from 2^6 on share the coin exp(-64), about 2^-92: zeros below it are its rare heads."""
    drawn = np.full((8, 1), 255, np.uint8)
    drawn[0], drawn[7] = 0, 0
    zeros, tails = bytes(8), b"\xff" * 8
    head_after_a_byte, one_more_head, then_tails = [zeros, zeros], [zeros, zeros], [tails]
    script = Script(drawn.tobytes(), *head_after_a_byte, b"\xff", *one_more_head, *then_tails)
    assert coins.laplace(1, 1, 1, script).tolist() == [1 + 2 * 64]
    assert not script.lines


def test_numbers_are_joined_from_digits_as_by_powers_of_two():
    generator = np.random.default_rng(3)
    for rows in range(1, 61):
        digits = generator.integers(0, 2, (rows, 5), np.uint8)
        obvious = [sum(int(digit) << k for k, digit in enumerate(column)) for column in digits.T]
        assert coins._from_digits(digits.copy()).tolist() == obvious


def test_the_cache_is_bounded_and_knows_a_scale_by_its_lowest_terms():
    coins._laplace_coins.cache_clear()
    coins.laplace(10, 4, 1, ssl.RAND_bytes)
    coins.laplace(5 * 10**9, 2 * 10**9, 1, ssl.RAND_bytes)
    assert coins._laplace_coins.cache_info().currsize == 1
    for charge in range(1, 2 * coins.SCALES_KEPT):
        coins.laplace(10**9 + 7, charge, 1, ssl.RAND_bytes)
    assert coins._laplace_coins.cache_info().currsize == coins.SCALES_KEPT


@pytest.mark.parametrize(("count", "bytes_each"), [(20_000, 61), (coins.MANY, 61 - 8 + 2)])
def test_draws_ask_for_a_bounded_number_of_bytes_at_a_time(count, bytes_each):
    asked = []
    coins.laplace(10**16, 1, count, lambda size: asked.append(size) or ssl.RAND_bytes(size))
    assert max(asked) <= coins.BLOCK
    assert bytes_each * count <= sum(asked) <= (bytes_each + 4) * count


EVEN = [(37, 10, 2), (120, 1, 8), (999_999_937, 140_737_481, 3), (10**16, 1, 8)]  # scale = numerator / charge, digits


def decimal_borders(numerator, charge, digits, bits):
    """The borders by decimal arithmetic to 200 digits."""
    context = Context(prec=200, Emin=-(10**12), Emax=10**12)
    below = [
        context.subtract(1, context.exp(context.divide(Decimal(-charge * number), Decimal(numerator))))
        for number in range(1, (1 << digits) + 1)
    ]
    return [math.floor(context.multiply(context.divide(each, below[-1]), Decimal(2**bits))) for each in below[:-1]]


@pytest.mark.parametrize("bits", [64, 80, 144])
@pytest.mark.parametrize(("numerator", "charge", "digits"), EVEN)
def test_borders_are_those_of_decimal_arithmetic(numerator, charge, digits, bits):
    expansions = coins.border_expansions(numerator, charge, digits, bits)
    assert expansions == decimal_borders(numerator, charge, digits, bits)


@pytest.mark.parametrize(("numerator", "charge", "digits"), EVEN)
def test_borders_lie_where_the_digits_one_by_one_put_them(numerator, charge, digits):
    _, *tossed = (expansion / 2**200 for expansion in coins.laplace_expansions(numerator, charge, 200))
    below = [expansion / 2**200 for expansion in coins.border_expansions(numerator, charge, digits, 200)]
    for number, share in enumerate(np.diff([0, *below, 1])):
        product = math.prod(p if number >> k & 1 else 1 - p for k, p in enumerate(tossed[:digits]))
        assert share == pytest.approx(product, rel=1e-9)


@pytest.mark.parametrize("charge", [1, 7, 100])
def test_a_table_names_the_number_of_each_cell_and_leaves_cells_with_a_border_open(charge):
    """The table against a list of the cells between each border and the next."""
    _, even = coins._coins_and_table(1000, charge)
    borders = [border >> 64 for border in coins.border_expansions(1000, charge, even.digits, 80)]
    obvious = []
    for number, border in enumerate(borders):
        obvious += [number] * (border - len(obvious)) + [~number]
        assert len(obvious) == border + 1
    obvious += [len(borders)] * ((1 << 16) - len(obvious))
    assert even._table.tolist() == obvious


@pytest.mark.parametrize("further", [-1, 0, 1])
def test_a_number_on_a_border_is_settled_by_a_word_and_then_further_words(further):
    _, even = coins._coins_and_table(120, 1)
    border = coins.border_expansions(120, 1, even.digits, 144)[3]
    cell, middle, deep = border >> 128, (border >> 64) % 2**64, border % 2**64
    words = [cell.to_bytes(2, sys.byteorder), word(middle + further)]
    if not further:
        words.append((deep + 1).to_bytes(8, "big"))
    script = Script(*words)
    assert even.draw(1, script).tolist() == [3 if further < 0 else 4]
    assert not script.lines


def test_many_draws_are_a_coin_a_bit_a_looked_up_number_and_further_digits():
    """At scale 120: after the coin of 0 come the digits from the ninth on, then signs, then the table's two bytes."""
    few, _ = coins._coins_and_table(120, 1)
    tossed = np.full((len(few), coins.MANY), 255, np.uint8)
    tossed[0, :2] = tossed[2, 1] = 0
    signs = bytes([0b1000_0000]) + bytes(coins.MANY // 8 - 1)
    cells = np.zeros(coins.MANY, np.uint16)
    assert few.first_byte.max() < 255
    blocks = coins.BLOCK // (len(few) + 2)
    lines = []
    for begin in range(0, coins.MANY, blocks):
        part = slice(begin, min(begin + blocks, coins.MANY))
        size = part.stop - part.start
        lines += [tossed[:, part].tobytes(), signs[: -(-size // 8)], cells[part].tobytes()]
    drawn = coins.laplace(120, 1, coins.MANY, Script(*lines))
    assert drawn[:3].tolist() == [1, -(1 + 2 * 256), 0]
    assert not drawn[2:].any()


def test_no_coin_is_tossed_at_0_and_100_percent():
    counts = np.array([[0, 7, 10**12]])
    kept = coins.binomial(counts, np.array([[0], [100]]), no_entropy)
    assert kept.tolist() == [[0, 0, 0], [0, 7, 10**12]]


def test_survivors_are_the_heads_of_each_cells_own_events(monkeypatch):
    """Blocks of 64 events cut through the cells; bytes of 128, ties at 50 %, are avoided, so one byte is one event."""
    monkeypatch.setattr(coins, "BLOCK", 64)
    generator = np.random.default_rng(4)
    counts = generator.integers(0, 90, (6, 5))
    counts[0, 0] = counts[2, 3] = counts[-1, -1] = 0
    counts[1, 1] = 300
    stream = bytearray()

    def entropy(count):
        line = generator.choice(np.delete(np.arange(256, dtype=np.uint8), 128), count).tobytes()
        stream.extend(line)
        return line

    kept = coins.binomial(counts, np.array(50), entropy)
    cells = np.split(np.frombuffer(stream, np.uint8), np.cumsum(counts)[:-1])
    assert kept.ravel().tolist() == [int((cell < 128).sum()) for cell in cells]
    assert len(stream) == counts.sum()


def test_shares_that_end_in_binary_stay_exact_on_ties():
    """50 % is 0.1000...: a byte of 128 is never below it, whatever follows."""
    assert coins.binomial(np.array([2]), np.array([50]), Script(bytes([128, 127]), word(1))).tolist() == [1]


def test_a_hundred_million_events_are_thinned_in_little_memory():
    tracemalloc.start()
    kept = coins.binomial(np.array([10**8]), np.array([37]), ssl.RAND_bytes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
    assert abs(kept[0] - 37 * 10**6) < 20 * math.sqrt(10**8 * 0.37 * 0.63)


def test_nothing_to_thin_is_nothing_drawn():
    assert coins.binomial(np.zeros(0, np.int64), np.array([50]), no_entropy).shape == (0,)
    assert coins.binomial(np.zeros(3, np.int64), np.array([50]), no_entropy).tolist() == [0, 0, 0]
