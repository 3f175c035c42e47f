"""One budget of several streams about the same people: from which step on each of them may measure.

What the present streams may charge fits into epsilon, as the configuration was checked. What epochs that have ended did
charge may stand beside it in a window: as long as both together are more than epsilon, nothing new is measured. While
the epsilon was a smaller one, a window that holds a charge of that time stays within it. In doubt the first step is
later.

Why. Change one person's rows, in all streams, inside a window that begins at step a and has w steps. The counts of a
stream without a cap change inside the window only; those under a cap until the block is over in which the window ends,
for a block of L steps at most until step a + w + L - 2 (`events/caps.py`). By the charges of these steps the person
loses at most the stream's share, however many they are, and what is lost by several streams adds up. So what has ended
with step z counts for the window only if a <= z, under a cap too: before a nothing changes. And what begins at step f
counts only if f <= a + w + L - 2, where L is 1 without a cap. Of windows that begin at a <= z, a stream that begins at
z + w + L - 1 or later is met by none: so long a stream waits for what has ended, by its own cap. Where the cap of a
stream itself changes, its store waits too (`live/stores/epochs.py`), so that a window meets one of its epochs at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventide.service.populations.claims import Claim, StreamWindows


class Member(NamedTuple):
    """A stream that is served, and what its store holds."""

    name: str
    epsilon: int  # nano; its share
    windows: StreamWindows
    next_step: int
    claims: Sequence[Claim]

    @property
    def keeps_its_share(self) -> bool:
        """Whether it goes on with the share and the window that its store had."""
        return bool(self.claims) and self.claims[-1].last is None


class Limit(NamedTuple):
    """What the epsilon of all streams together was, up to a moment (microseconds UTC)."""

    epsilon: int
    until: int


class SharedBudget(NamedTuple):
    """Everything that is or was published about the same people."""

    epsilon: int  # nano, of all streams together
    limits: Sequence[Limit]  # what it was before
    members: Sequence[Member]
    gone: Mapping[str, Sequence[Claim]]  # of stores that no stream has any more, by their names

    def first_free(self, one: Member) -> int:
        """The first step at which a member may measure.

        One that keeps its share has to stand beside the others that keep theirs; it waits only where epsilon has become
        smaller. One with another share, or a new one, has to stand beside all.
        """
        if not one.keeps_its_share:
            return self._first_free(one.windows, self.members)
        kept = [member for member in self.members if member.keeps_its_share]
        return max(self._first_free(one.windows, kept), one.claims[-1].first)

    def _first_free(self, windows: StreamWindows, charging: Sequence[Member]) -> int:
        """The step behind the last window in which `charging` and whatever has ended hold too much.

        A window that begins later holds what ended later still, and more of what begins at last: so the windows that
        are the last to share something with what has ended are the fullest.
        """
        of_members = {member.name: member.claims for member in self.members}
        of_others = {f"store {name}": claims for name, claims in self.gone.items()}
        ended = [
            (windows.last_shared(claim), self._most(windows, claim), owner)
            for owner, claims in (of_members | of_others).items()
            for claim in claims
            if claim.last is not None
        ]
        limits = [(windows.step_of(limit.until), limit.epsilon) for limit in self.limits]
        last_begins = {last for last, *_ in ended} | {last for last, _ in limits}

        def holds_too_much(begin: int) -> bool:
            held: dict[str, int] = defaultdict(int)
            for last, most, owner in ended:
                held[owner] = max(held[owner], most if last >= begin else 0)
            for member in charging:
                if _first(windows, member) < begin + member.windows.reach:
                    held[member.name] = max(held[member.name], member.epsilon)
            allowed = min([self.epsilon, *(epsilon for last, epsilon in limits if last >= begin)])
            return sum(held.values()) > allowed

        return max([0, *(begin + windows.reach for begin in last_begins if holds_too_much(begin))])

    def _most(self, windows: StreamWindows, claim: Claim) -> int:
        """What a window may hold of a claim; where theirs are other windows, nothing fits beside it."""
        return claim.epsilon if windows.match(claim) else self.epsilon + 1


def _first(windows: StreamWindows, member: Member) -> int:
    """The first step that a member may charge, in the steps of these windows."""
    if not member.keeps_its_share:
        return 0
    return windows.step_of(member.windows.timeline.begin(member.claims[-1].first))
