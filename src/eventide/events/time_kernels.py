"""Texts that say when, read in one compiled pass over Arrow's buffers.

See `times` and `time_formats` for what is read how. A text that says nothing is marked, never guessed at.
"""

from __future__ import annotations

import numpy as np

from eventide.compiling import kernel
from eventide.events.text_kernels import trimmed

UNREADABLE, IN_UTC, LOCAL = 0, 1, 2
NANOSECONDS, BY_SIZE = 0, -1  # units of numbers besides so many microseconds
DIRECTIVE = 128  # added to the letter of a directive in a pattern; below it stand the characters that must be there
_MICROSECONDS = 1_000_000
_MOST = 10**18  # microseconds, beyond any year that is read
_MOST_DIGITS = 19  # with them a number can overflow once, and is negative then


@kernel(nogil=True)
def read(offsets, data):  # type: ignore[no-untyped-def]
    """The time of each text in microseconds, and whether it is in UTC, local, or unreadable."""
    size = len(offsets) - 1
    times, kinds = np.zeros(size, np.int64), np.zeros(size, np.uint8)
    for row in range(size):
        begin, end = trimmed(data, offsets[row], offsets[row + 1])
        if end - begin >= 10 and data[begin + 4] == ord("-") and data[begin + 7] == ord("-"):
            times[row], kinds[row] = _iso(data, begin, end)
        else:
            times[row], kinds[row] = _number(data, begin, end, BY_SIZE)
    return times, kinds


@kernel(nogil=True)
def read_numbers(offsets, data, unit):  # type: ignore[no-untyped-def]
    """The same for texts that count a unit since 1970."""
    size = len(offsets) - 1
    times, kinds = np.zeros(size, np.int64), np.zeros(size, np.uint8)
    for row in range(size):
        begin, end = trimmed(data, offsets[row], offsets[row + 1])
        times[row], kinds[row] = _number(data, begin, end, unit)
    return times, kinds


@kernel(nogil=True)
def read_pattern(offsets, data, pattern):  # type: ignore[no-untyped-def]
    """The same for texts like a pattern of Y m d H M S f and, at its end, z, where each number has all its digits."""
    size = len(offsets) - 1
    times, kinds = np.zeros(size, np.int64), np.zeros(size, np.uint8)
    for row in range(size):
        begin, end = trimmed(data, offsets[row], offsets[row + 1])
        times[row], kinds[row] = _like(data, begin, end, pattern)
    return times, kinds


@kernel(nogil=True)
def _like(data, place, end, pattern):  # type: ignore[no-untyped-def]
    year, month, day, hour, minute, second, fraction, offset, kind = 0, 0, 0, 0, 0, 0, 0, 0, LOCAL
    for code in pattern:
        letter, width = code - DIRECTIVE, 4 if code == DIRECTIVE + ord("Y") else 2
        if letter == ord("z"):
            if place >= end:
                return 0, UNREADABLE
            offset, good = _offset(data, place, end)
            place, kind = end, IN_UTC if good else UNREADABLE
        elif letter == ord("f"):
            begin = place
            fraction, place = _fraction(data, place, end, _MICROSECONDS)
            if fraction < 0 or place - begin > 6:
                return 0, UNREADABLE
        elif letter < 0:
            if place >= end or data[place] != code:
                return 0, UNREADABLE
            place += 1
        else:
            number = _digits(data, place, width) if place + width <= end else -1
            if number < 0:
                return 0, UNREADABLE
            place += width
            if letter == ord("Y"):
                year = number
            elif letter == ord("m"):
                month = number
            elif letter == ord("d"):
                day = number
            elif letter == ord("H"):
                hour = number
            elif letter == ord("M"):
                minute = number
            else:
                second = number
    if place != end or year < 1 or month < 1 or month > 12 or day < 1 or day > _days_of(year, month):
        return 0, UNREADABLE
    if hour > 23 or minute > 59 or second > 59:
        return 0, UNREADABLE
    seconds = ((_days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return seconds * _MICROSECONDS + fraction - offset, kind


@kernel(nogil=True)
def _iso(data, begin, end):  # type: ignore[no-untyped-def]
    year, month, day = _digits(data, begin, 4), _digits(data, begin + 5, 2), _digits(data, begin + 8, 2)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > _days_of(year, month):
        return 0, UNREADABLE
    time = _days_since_1970(year, month, day) * 86_400 * _MICROSECONDS
    place = begin + 10
    if place == end:
        return time, LOCAL
    if data[place] != ord("T") and data[place] != ord("t") and data[place] != ord(" "):
        return 0, UNREADABLE
    if end - place < 6 or data[place + 3] != ord(":"):
        return 0, UNREADABLE
    hour, minute, second = _digits(data, place + 1, 2), _digits(data, place + 4, 2), 0
    place += 6
    if place < end and data[place] == ord(":"):
        if end - place < 3:
            return 0, UNREADABLE
        second = _digits(data, place + 1, 2)
        place += 3
        if place < end and (data[place] == ord(".") or data[place] == ord(",")):
            fraction, place = _fraction(data, place + 1, end, _MICROSECONDS)
            if fraction < 0:
                return 0, UNREADABLE
            time += fraction
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return 0, UNREADABLE
    time += ((hour * 60 + minute) * 60 + second) * _MICROSECONDS
    if place == end:
        return time, LOCAL
    offset, good = _offset(data, place, end)
    return (time - offset, IN_UTC) if good else (0, UNREADABLE)


@kernel(nogil=True)
def _offset(data, place, end):  # type: ignore[no-untyped-def]
    """Z, +02, +0200 or +02:00 in microseconds, perhaps after a blank."""
    if data[place] == ord(" "):
        place += 1
    if end - place == 1:
        return 0, data[place] == ord("Z") or data[place] == ord("z")
    if data[place] != ord("+") and data[place] != ord("-"):
        return 0, False
    hours, minutes = -1, -1
    if end - place == 3:
        hours, minutes = _digits(data, place + 1, 2), 0
    elif end - place == 5:
        hours, minutes = _digits(data, place + 1, 2), _digits(data, place + 3, 2)
    elif end - place == 6 and data[place + 3] == ord(":"):
        hours, minutes = _digits(data, place + 1, 2), _digits(data, place + 4, 2)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return 0, False
    offset = (hours * 60 + minutes) * 60 * _MICROSECONDS
    return (offset if data[place] == ord("+") else -offset), True


@kernel(nogil=True)
def _number(data, begin, end, unit):  # type: ignore[no-untyped-def]
    """Units since 1970; by their size seconds, or thousandths, millionths or billionths where one is too large."""
    negative = begin < end and data[begin] == ord("-")
    if negative:
        begin += 1
    whole, place = 0, begin
    while place < end and ord("0") <= data[place] <= ord("9"):
        whole = whole * 10 + (data[place] - ord("0"))
        place += 1
    if place == begin or place - begin > _MOST_DIGITS or whole < 0:
        return 0, UNREADABLE
    if unit == BY_SIZE:
        unit = _MICROSECONDS if whole < 10**11 else 1_000 if whole < 10**14 else 1 if whole < 10**17 else NANOSECONDS
    if unit > 1 and whole > _MOST // unit:
        return 0, UNREADABLE
    time = whole * unit if unit else whole // 1_000
    if place < end:
        if data[place] != ord("."):
            return 0, UNREADABLE
        fraction, place = _fraction(data, place + 1, end, unit)
        if fraction < 0 or place != end:
            return 0, UNREADABLE
        time += fraction
    return (-time if negative else time), IN_UTC


@kernel(nogil=True)
def _fraction(data, place, end, unit):  # type: ignore[no-untyped-def]
    """Digits after the point times a unit, cut to whole microseconds; -1 where there is none. And where they end."""
    fraction, begin = 0, place
    while place < end and ord("0") <= data[place] <= ord("9"):
        unit //= 10
        fraction += (data[place] - ord("0")) * unit
        place += 1
    return (fraction if place > begin else -1), place


@kernel(nogil=True)
def _digits(data, place, count):  # type: ignore[no-untyped-def]
    """So many digits as a number, -1 if one is none."""
    number = 0
    for at in range(place, place + count):
        if data[at] < ord("0") or data[at] > ord("9"):
            return -1
        number = number * 10 + (data[at] - ord("0"))
    return number


@kernel(nogil=True)
def _days_of(year, month):  # type: ignore[no-untyped-def]
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@kernel(nogil=True)
def _days_since_1970(year, month, day):  # type: ignore[no-untyped-def]
    """Counted in years that begin in March, so that a leap day is the last of its year."""
    if month <= 2:
        year, month = year - 1, month + 12
    days = (153 * (month - 3) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + days - 719_468
