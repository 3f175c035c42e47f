"""The ledger refuses: for every window of w steps, what was charged inside it stays within epsilon, exactly.

Entries are points (one step) and spans (from an opening to a close, counted once in every window they touch). A charge
belongs to the current step, so among the windows that contain it the one ending now holds the most: it contains every
point and touches every span that a later one does, as far as they exist yet. Keeping that one total within epsilon
keeps all windows within it, and its largest value so far is the worst window. Arrays are copied on their way in and
out, so that nobody who uses a buffer again, or writes into a result, changes what was charged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Bools, Floats, Ints
from eventide.errors import BudgetExceeded, InputError, StateError
from eventide.privacy.amounts import NANO, Amount, nano
from eventide.privacy.state import Stateful

MOST = 10**9  # steps, bins or replicas: no machine holds arrays of more


class Entry(NamedTuple):
    """One line of a ledger's record: a point of a step, or a span of a lane that opens or closes at it."""

    step: int
    kind: str  # "point", "open" or "close"
    lane: str  # of a span; empty for a point
    amount: int  # nano-epsilon


class WindowLedger(Stateful):
    """The budget of every window of `window` steps, for `replicas` independent streams side by side.

    A charge is an integer array of nano-epsilon: a column `(R, 1)` where a query touches all bins alike, `(R, d)` for
    the budget of each bin. The charge of a step is the maximum over bins of the sum of the budgets of all queries
    touching the bin, since somebody may be in one bin now and in another later.

    A few numpy operations a step; memory O(min(window, steps)) rows.

    Parameters
    ----------
    epsilon
        What no window may exceed.
    window
        How many steps a window has.
    replicas
        How many independent streams have a budget of their own.
    bins
        With `bins=d` there is one account for each bin (`accounting="fixed-bin"`). That protects only event sequences
        which stay in one bin, and is kept for comparison with published figures.

    >>> ledger = WindowLedger(epsilon=1, window=2)
    >>> ledger.charge(600_000_000)
    >>> ledger.advance()
    >>> ledger.left()
    0.4
    >>> ledger.charge(500_000_000)
    Traceback (most recent call last):
    eventide.errors.BudgetExceeded: asked for 0.5 of epsilon with 0.4 left in the window of 2 steps; ...
    """

    __slots__ = (  # no other attributes: nobody can put a charge of their own in the place of this one
        *("nano_epsilon", "window", "replicas", "accounts", "_nothing", "step", "_spent", "_worst", "_rows"),
        *("_point", "_bins", "_peak", "_opened", "_closed", "_open", "_entries"),
    )
    state = ("step", "_spent", "_worst", "_rows", "_point", "_bins", "_peak", "_opened", "_closed", "_open")

    def __init__(self, epsilon: Amount, window: int, replicas: int = 1, bins: int = 1) -> None:
        self.nano_epsilon: int = nano(epsilon)
        self.window = positive_integer(window, "window")
        self.replicas = positive_integer(replicas, "replicas")
        self.accounts = (self.replicas, positive_integer(bins, "bins"))
        nothing = np.zeros(self.accounts, dtype=np.int64)
        nothing.flags.writeable = False
        self._nothing = nothing
        self.step = 0
        self._spent: Ints = nothing  # in the window that ends at this step
        self._worst: Ints = nothing  # the most _spent was at the end of a step
        self._rows = np.zeros((min(self.window, 16), *self.accounts), dtype=np.int64)  # step t stands in row t % window
        self._point: Ints = nothing  # charged at this step alike to all bins of an account
        self._bins: Ints | None = None  # charged at this step on top, bin by bin
        self._peak: Ints = nothing  # the largest of _bins
        self._opened: Ints = nothing  # spans opened at this step
        self._closed: Ints = nothing  # spans closed at this step: they age like points from here
        self._open: dict[str, Ints] = {}  # open spans, by lane
        self._entries: list[Entry] | None = None

    @property
    def promised(self) -> int:
        """The budget of every window, in nano-epsilon."""
        return self.nano_epsilon

    @property
    def epsilon(self) -> float:
        """The budget of every window."""
        return self.promised / NANO

    def shared(self, budget: int) -> int:
        """What of a budget of every window, in nano-epsilon, any `window` steps of this ledger share."""
        return budget

    def loss(self, charge: Ints) -> Ints:
        """What one person loses in a window that is charged so much."""
        return charge

    def room(self, charge: Ints) -> Ints:
        """What one person would lose by a further charge."""
        return charge

    @property
    def entries(self) -> list[Entry] | None:
        """Where everything charged is written down; None, as at first, where nobody asked for it.

        A step's spans are entered as they open and close, its points as one when it ends. Whoever sets the list reads
        and clears it.
        """
        return self._entries

    @entries.setter
    def entries(self, record: list[Entry] | None) -> None:
        if record is not None and self.accounts != (1, 1):
            raise StateError("entries are written down for one account only; take replicas=1 and accounting='moving'")
        self._entries = record
        if self.step == 0:  # spans of a ledger that is new were opened by whoever made it
            for lane, held in self._open.items():
                self._enter("open", lane, held)

    def left_nano(self) -> Ints:
        """What the window that ends at this step still has, in nano-epsilon, shape `(R, 1)` or `(R, d)`."""
        return self.nano_epsilon - self._spent

    def left(self) -> float | Floats:
        """What the window that ends at this step still has, in epsilon."""
        return self._shown(self.room(self.left_nano()))

    def worst_window(self) -> float | Floats:
        """The most that any window has held so far, in epsilon; never above epsilon."""
        return self._shown(self.loss(self.worst_charge()))

    def worst_charge(self) -> Ints:
        """The same as it was charged, in nano-epsilon, shape `(R, 1)` or `(R, d)`."""
        return np.maximum(self._worst, self._spent)

    def charged(self) -> float | Floats:
        """What the current step was charged, in epsilon, with the spans that opened at it."""
        return self._shown(self._point + self._peak + self._opened)

    def window_charges(self) -> tuple[int, Ints, Ints]:
        """The first step of the window that ends now; what each of its steps was charged; what open spans hold.

        In nano-epsilon, of shapes `(steps, R, accounts)` and `(R, accounts)`. A span that was closed stands at the step
        of its close, and all together are what the window holds.
        """
        first = max(0, self.step - self.window + 1)
        past = self._rows[np.arange(first, self.step) % self.window]
        spans = sum(self._open.values(), np.zeros_like(self._nothing))
        return first, np.concatenate([past, (self._point + self._peak + self._closed)[None]]), spans

    def plot(self) -> Any:
        """What the steps of the window that ends now were charged, and their sum, as a matplotlib figure."""
        from eventide.privacy.pictures import draw_ledger

        return draw_ledger(self)

    def __repr__(self) -> str:
        left, worst = np.min(self.left()), np.max(self.worst_window())
        settings = f"epsilon={self.epsilon:g}, {self._settings()}, step={self.step}"
        return f"{type(self).__name__}({settings}, left={left:g}, worst_window={worst:g})"

    def _settings(self) -> str:
        return f"window={self.window}"

    def _repr_html_(self) -> str:
        from eventide.privacy.pictures import ledger_card

        return ledger_card(self)

    def charge(self, amount: int | Ints) -> None:
        """Charge `amount` to the current step, or refuse and change nothing."""
        asked = self.checked(amount)
        if asked.shape[1] in (1, self.accounts[1]):
            self._take(asked)
            self._point = self._point + asked
        elif self.accounts[1] > 1:
            raise StateError(f"{asked.shape[1]} budgets do not fit {self.accounts[1]} accounts")
        else:
            bins = asked if self._bins is None else self._bins + asked
            peak = bins.max(axis=1, keepdims=True)
            self._take(peak - self._peak)
            self._bins, self._peak = bins, peak

    def charge_each(self, amounts: Ints) -> None:
        """Charge this step and those after it one amount each and advance past them, or refuse and change nothing.

        The same as to charge and advance step by step, in a few array operations. Sums can leave 64 bits only behind
        the first window that is over epsilon; that one is exact, so no excess is missed.
        """
        asked = self._checked_each(amounts)
        rows = np.broadcast_to(asked, (len(asked), *self.accounts)).copy()
        rows[0] += self._point + self._peak + self._closed
        leaving = self._leaving(rows)
        spent = self._spent + np.cumsum(asked, axis=0) - (np.cumsum(leaving, axis=0) - leaving)
        over = np.argwhere(spent > self.nano_epsilon)
        if len(over):
            refused, left = int(asked[over[0, 0], 0, 0]), self.nano_epsilon - int(spent[tuple(over[0])])
            raise BudgetExceeded(refused / NANO, (left + refused) / NANO, self.window)
        if self._entries is not None:
            points = np.append(self._point + self._peak + asked[0], asked[1:])
            self._entries += [
                Entry(self.step + n, "point", "", int(points[n])) for n in np.flatnonzero(points).tolist()
            ]
        self._worst = np.maximum(self._worst, spent.max(axis=0))
        self._make_room(self.step + len(rows))
        kept = rows[-self.window :]
        self._rows[(self.step + np.arange(len(rows) - len(kept), len(rows))) % self.window] = kept
        self.step += len(rows)
        self._spent = spent[-1] - leaving[-1]
        self._begin_step()

    def open_span(self, amount: int | Ints, lane: str = "span") -> None:
        """Charge a run that begins at this step; where the amount is 0 none begins. A lane holds one open span each."""
        asked = self.checked(amount)
        if asked.shape[1] not in (1, self.accounts[1]):
            raise StateError("a span is charged to all bins of an account alike")
        held = self._open.get(lane, self._nothing)
        if np.logical_and(held, asked).any():
            raise StateError(f"a span is open in lane {lane!r}; close it before the next one begins")
        self._take(asked)
        self._open[lane] = held + asked
        self._opened = self._opened + asked
        self._enter("open", lane, asked)

    def close_span(self, where: Bools | None = None, lane: str = "span") -> None:
        """End the open spans of `lane` at this step, all of them or those of the accounts in `where`."""
        held = self._open.get(lane, self._nothing)
        closing = held if where is None else np.where(where, held, 0)
        self._open[lane] = held - closing
        self._closed = self._closed + closing
        self._enter("close", lane, closing)

    def open_spans(self, lane: str = "span") -> Ints:
        """What the open spans of `lane` were charged, 0 where none is open."""
        return self._open.get(lane, self._nothing).copy()

    def advance(self) -> None:
        """Seal the current step and begin the next: the oldest step of the window falls out of it."""
        points = self._point + self._peak
        self._enter("point", "", points)
        self._worst = np.maximum(self._worst, self._spent)
        self._make_room(self.step + 1)
        self._rows[self.step % self.window] = points + self._closed
        self.step += 1
        if self.step >= self.window:
            self._spent = self._spent - self._rows[self.step % self.window]
        self._begin_step()

    def _enter(self, kind: str, lane: str, amounts: Ints) -> None:
        if self._entries is not None and amounts.any():
            self._entries.append(Entry(self.step, kind, lane, int(amounts.item())))

    def _begin_step(self) -> None:
        self._point = self._peak = self._opened = self._closed = self._nothing
        self._bins = None

    def _make_room(self, steps: int) -> None:
        """Have rows for the last steps of the first `steps`; a doubling at a time."""
        while len(self._rows) < min(steps, self.window):
            grown = min(len(self._rows), self.window - len(self._rows))
            self._rows = np.concatenate([self._rows, np.zeros((grown, *self.accounts), dtype=np.int64)])

    def _leaving(self, rows: Ints) -> Ints:
        """What falls out of the window at the end of this step and of each one after it, of which `rows` are made."""
        steps = self.step + 1 - self.window + np.arange(len(rows))
        leaving = np.zeros_like(rows)
        earlier, among = (steps >= 0) & (steps < self.step), steps >= self.step
        leaving[earlier] = self._rows[steps[earlier] % self.window]
        leaving[among] = rows[steps[among] - self.step]
        return leaving

    def _take(self, added: Ints) -> None:
        """Add to the window that ends now, or raise before anything changed."""
        spent = self._spent + added
        if spent.max() > self.nano_epsilon:
            worst = np.unravel_index(int(spent.argmax()), spent.shape)
            asked = int(np.broadcast_to(added, spent.shape)[worst])
            left = int(np.broadcast_to(self.left_nano(), spent.shape)[worst])
            raise BudgetExceeded(asked / NANO, left / NANO, self.window)
        self._spent = spent

    def checked(self, amount: int | Ints) -> Ints:
        """A copy of `amount`, an int64 column or matrix from 0 to epsilon, or a refusal: no sum of two can overflow."""
        asked = np.array(amount)
        if asked.dtype != np.int64 or asked.ndim > 2:
            raise InputError("a charge is a whole number of nano-epsilon, as a Python int or an int64 array")
        if asked.ndim != 2:
            asked = asked.reshape(-1, 1)
        if asked.shape[0] not in (1, self.replicas):
            raise InputError(f"{asked.shape[0]} charges do not fit {self.replicas} replicas")
        if asked.view(np.uint64).max(initial=0) > self.nano_epsilon:  # unsigned, negative numbers are above any epsilon
            if asked.min() < 0:
                raise InputError("a charge cannot be negative")
            raise BudgetExceeded(int(asked.max()) / NANO, int(self.left_nano().min()) / NANO, self.window)
        return asked

    def _checked_each(self, amounts: Ints) -> Ints:
        """One charge for each of several steps, alike for all replicas, as `(steps, 1, 1)`."""
        asked = np.array(amounts)
        if asked.dtype != np.int64 or asked.ndim != 1 or not asked.size:
            raise InputError("charges of several steps are whole nano-epsilon, as an int64 array of one axis")
        if asked.min() < 0:
            raise InputError("a charge cannot be negative")
        if asked.max() > self.nano_epsilon:
            raise BudgetExceeded(int(asked.max()) / NANO, self.epsilon, self.window)
        return asked[:, None, None]

    def _shown(self, amounts: Ints) -> float | Floats:
        """Epsilon as users see it: no axis for a single replica, no axis for a single account of each."""
        shown = amounts / NANO
        if self.accounts[1] == 1:
            shown = shown[:, 0]
        return shown if self.replicas > 1 else shown[0] if shown.ndim > 1 else float(shown[0])


def positive_integer(value: int, name: str, most: int = MOST) -> int:
    """`value` as a plain int from 1 to `most`, or a refusal that names it."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least 1")
    if value > most:
        raise InputError(f"{name} can be {most:,} at most; choose a smaller number")
    return int(value)
