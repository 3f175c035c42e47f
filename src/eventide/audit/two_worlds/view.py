"""What can be seen of a world by anybody but its operator: named channels of bytes, compared byte for byte.

What is left out is listed here, one by one and each with its reason: times of this machine, and what is not for
everybody.
"""

from __future__ import annotations

import fnmatch
import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Unseen(NamedTuple):
    """Something in the channels of a name (`*` stands for anything) that is not compared, and why.

    Whatever matches `pattern` in a line is left out, and the line too if nothing else is in it; the whole channel where
    there is no pattern.
    """

    channel: str
    pattern: str | None
    reason: str


TIMES = (
    Unseen(
        "log*", r'"lag": (?:null|-?[\d.e+-]+)', "how long after its step a release came, by the machine's own clock"
    ),
    Unseen("std*", r'"time": "[^"]*"', "when a log line was written, by the machine's own clock"),
    Unseen("std*", r'"lag": (?:null|-?[\d.e+-]+)', "how long after its step a release came, as in the log"),
)
NOT_FOR_EVERYBODY = (
    Unseen("own reply*", None, "replies to that person's own requests: they know what they sent"),
    Unseen("operators*", None, "counters of events, for operators only"),
    Unseen("stderr*", r"For operators only, .*", "counters of events, for operators only, and named so"),
    Unseen(
        "stdout*",
        r'"operators_only": \{(?:[^{}]|\{[^{}]*\})*\}',
        "counters of events, for operators only, and named so",
    ),
)
REFUSED = Unseen(
    "*",
    r"(Error: |MostRowsRefused: |MixedZones: |NumberedDates: |NothingInside: )?"
    r"(more than half of the first rows were refused|of the first times in|the first times in column|"
    r"the source holds no row|no row that can be counted).*",
    "the refusal of input that cannot be meant so, before the first release: there is nothing to hide yet",
)
UNSEEN = (*TIMES, *NOT_FOR_EVERYBODY, REFUSED)


class PublicView:
    """Channels in the order in which they were first used; threads may share it."""

    def __init__(self) -> None:
        self._channels: dict[str, list[bytes]] = defaultdict(list)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._channels))

    def show(self, channel: str, content: bytes | str) -> None:
        """Add something to a channel."""
        with self._lock:
            self._channels[channel].append(content.encode() if isinstance(content, str) else content)

    def lines(self, channel: str, unseen: Iterable[Unseen] = ()) -> list[bytes]:
        """The lines of a channel, without what is not compared."""
        lines = b"\n".join(self._channels[channel]).split(b"\n") if channel in self._channels else []
        for rule in unseen:
            if fnmatch.fnmatchcase(channel, rule.channel):
                lines = [] if rule.pattern is None else list(_without(rule.pattern.encode(), lines))
        return lines

    def holds(self, rule: Unseen) -> bool:
        """Whether a rule applies to anything here."""
        return any(self.lines(channel) != self.lines(channel, [rule]) for channel in self)

    def differences(self, other: PublicView, unseen: Iterable[Unseen]) -> Iterator[str]:
        """The first difference in each channel, for people to read."""
        rules = tuple(unseen)
        for channel in [*self, *(name for name in other if name not in self._channels)]:
            ours, theirs = self.lines(channel, rules), other.lines(channel, rules)
            if ours != theirs:
                yield _difference(channel, ours, theirs)


def _without(pattern: bytes, lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        rest = re.sub(pattern, b"", line)
        if rest or not line:
            yield rest


def _difference(channel: str, ours: list[bytes], theirs: list[bytes]) -> str:
    pairs = enumerate(zip(ours, theirs, strict=False), 1)
    number, one, two = next(((n, a, b) for n, (a, b) in pairs if a != b), (min(len(ours), len(theirs)) + 1, b"", b""))
    if number > len(ours) or number > len(theirs):
        longer = "A" if len(ours) > len(theirs) else "B"
        one, two = (lines[number - 1] if number <= len(lines) else b"(no such line)" for lines in (ours, theirs))
        return f"{channel}, line {number} is in world {longer} only\n  A: {_text(one)}\n  B: {_text(two)}"
    place = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    begin = max(0, place - 60)  # long lines are cut, so that the difference is in sight
    shown = [_text(line[begin : place + 40]) for line in (one, two)]
    mark = " " * (len(_text(one[begin:place])) + 5) + "^"
    return f"{channel}, line {number}\n  A: {shown[0]}\n  B: {shown[1]}\n{mark}"


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
