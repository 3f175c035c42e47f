"""Which epoch a writer goes on with: the last one, or a new one where the setting has changed.

A new epoch measures only when no window, old or new, can reach a charge of before and one of after; in doubt that is
later, never earlier. A setting is kept as text; a refusal of another one names every difference and a way out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from eventide.errors import InputError
from eventide.events.durations import in_words
from eventide.live.stores.base import Epoch, Store, StoreSetting, with_ends
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import Entry
from eventide.privacy.noise import PRIVATE_NAMES

READ = {"time": "time", "time_format": "time format", "user": "user", "bin": "bin"}  # where events are read from
LONGEST_SHOWN = 60  # characters of a value in a message


def setting_text(setting: StoreSetting) -> str:
    """A setting as JSON; what older versions did not know is left out where there is none of it."""
    since_then = ("window_sensitivity", "cap", "named", "read")
    fields = {name: value for name, value in setting._asdict().items() if value is not None or name not in since_then}
    return json.dumps(fields, sort_keys=True, default=str)


def read_setting(text: str) -> StoreSetting:
    """The setting that `setting_text` wrote; its bins are a tuple again."""
    fields = json.loads(text)
    return StoreSetting(**fields | {"bins": tuple(fields["bins"])})


def is_same(one: StoreSetting, other: StoreSetting) -> bool:
    """Whether a store goes on from one to the other without a new epoch."""
    return setting_text(_itself(one)) == setting_text(_itself(other))


def _itself(setting: StoreSetting) -> StoreSetting:
    """A setting without what may change while it stays the same."""
    return setting._replace(named=None, read=None)


def refuse_other_columns(stored: StoreSetting, wanted: StoreSetting) -> None:
    """Refuse events that are read from other columns than before: mostly a mistake, which would publish pure noise."""
    if stored.read is None or wanted.read is None:
        return  # it is not known, as of a store that an older version has begun
    changed = [
        f"{READ[name]} ({_shown(stored.read.get(name))} before, {_shown(wanted.read.get(name))} now)"
        for name in READ
        if stored.read.get(name) != wanted.read.get(name)
    ]
    if changed:
        raise InputError(
            f"this store was published from other columns: {'; '.join(changed)}. Nothing was published or charged. "
            "Correct what was given; if the same events have other columns now, give --new-columns (in Python "
            "new_columns=True)"
        )


def refuse_noise(setting: StoreSetting, *, for_tests: bool) -> None:
    """Refuse noise that is not private, unless the store was made for tests."""
    if setting.noise not in PRIVATE_NAMES and not for_tests:
        raise InputError(
            f"a store takes private noise only ({' or '.join(PRIVATE_NAMES)}), not {setting.noise!r}; "
            "only a store made for tests takes any other, and its guarantee is NOT PRIVATE for ever"
        )


def epoch_for(store: Store, setting: StoreSetting, *, new_epoch: bool, not_before: int = 0) -> Epoch:
    """The epoch to go on with: the last one, or one to be begun where the store is empty or a new one is wanted.

    It measures no step before `not_before`; the last one goes on only if it would not either.
    """
    epochs = store.epochs()
    if not epochs:
        return Epoch(0, 0, not_before, setting)
    last, next_step = epochs[-1], store.next_step()
    refuse_other_steps(last.setting, setting)
    if is_same(last.setting, setting) and not_before <= max(next_step, last.measured_from):
        return last
    first = max(first_measured(epochs, store.entries(), next_step, setting), not_before)
    if not new_epoch:
        refuse_other_setting(last.setting, setting, first)
        refuse_full_windows(first)
    return Epoch(len(epochs), next_step, first, setting)


def first_measured(epochs: Sequence[Epoch], entries: Iterable[Entry], next_step: int, setting: StoreSetting) -> int:
    """The first step at which an epoch with this setting, begun at `next_step`, may charge.

    Behind the last step that any epoch charged, or touched by a span still open at its end, lie so many steps that no
    change of one person meets both.
    """
    held = list(entries)
    first = next_step
    for epoch, end in with_ends(epochs, next_step):
        touched = last_touched([entry for entry in held if epoch.first_step <= entry.step < end], end)
        if epoch.restored:
            touched = max(touched, epoch.first_step - 1)
            first = max(first, epoch.measured_from)  # what was lost may belong to an epoch with a longer window
        if touched >= 0:
            first = max(first, touched + epoch.setting.apart(setting))
    return first


def first_measured_after_loss(
    epochs: Sequence[Epoch], entries: Iterable[Entry], stored: int, next_step: int, setting: StoreSetting
) -> int:
    """The same where the steps from `stored` up to `next_step` were lost, so that each may have been charged.

    They may belong to any epoch that was not over before them.
    """
    longest = max(epoch.setting.apart(setting) for epoch, end in with_ends(epochs, next_step) if end >= stored)
    return max(first_measured(epochs, entries, next_step, setting), next_step - 1 + longest)


def last_touched(entries: Iterable[Entry], end: int) -> int:
    """The last step with a charge among the entries of an epoch that ends before `end`; -1 where there is none."""
    open_spans: Counter[str] = Counter()
    last = -1
    for entry in entries:
        last = max(last, entry.step)
        open_spans[entry.lane] += {"open": entry.amount, "close": -entry.amount}.get(entry.kind, 0)
    return end - 1 if any(open_spans.values()) else last


def refuse_other_steps(stored: StoreSetting, wanted: StoreSetting) -> None:
    """Refuse steps that are cut or bounded in another way: they would not be the same steps any more."""
    if (account := stored.steps.get("account")) != wanted.steps.get("account"):
        raise InputError(
            "this store draws from one account for ever; give the address of that one, as --account"
            if account
            else "this store was used without an account, so none knows what it charged; publish to another store, or "
            "leave --account out"
        )
    if different := differences(stored, wanted, ["steps"]):
        days = (
            " (for more days leave --start as it is, and move --until)"
            if different[0].startswith("steps.start ")
            else ""
        )
        raise InputError(
            f"this store counts steps in another way: {'; '.join(different)}. That can never change in a store; "
            f"give what it was made with{days}, or publish to another store, which has a ledger of its own"
        )


def refuse_other_setting(stored: StoreSetting, wanted: StoreSetting, measured_from: int) -> None:
    """Refuse another setting, name every difference, and say what a new epoch would do."""
    if different := differences(stored, wanted, StoreSetting._fields):
        raise InputError(
            f"this store was made with another setting: {'; '.join(different)}. Give what it was made with, or go on "
            f"with --new-epoch: then every step before step {measured_from} repeats the last release, and measuring "
            "begins again when no window holds an older charge"
        )


def refuse_full_windows(measured_from: int) -> None:
    """Refuse to go on as before where other stores of the same people have charged what is left, and say what would."""
    raise InputError(
        f"other stores of the same people have charged so much that nothing may be measured before step "
        f"{measured_from}: go on with --new-epoch, then every step before it repeats the last release; or give back "
        "the larger epsilon that these people had"
    )


def differences(stored: StoreSetting, wanted: StoreSetting, names: Iterable[str]) -> list[str]:
    """Every field of these names that differs, in words."""
    before, now = (json.loads(setting_text(_itself(setting))) for setting in (stored, wanted))
    return [text for name in names for text in _different(name, before.get(name), now.get(name))]


def _different(name: str, before: Any, now: Any) -> list[str]:
    if before == now:
        return []
    before, now = _by_statistic(before), _by_statistic(now)
    if isinstance(before, dict) and isinstance(now, dict):
        keys = dict.fromkeys((*before, *now))
        return [text for key in keys for text in _different(f"{name}.{key}", before.get(key), now.get(key))]
    if isinstance(before, list) and isinstance(now, list):
        return [f"{name} ({_different_lists(before, now)})"]
    if name in ("epsilon", "queries.epsilon"):
        before, now = before / NANO, now / NANO
    if name == "steps.length":
        before, now = (length and in_words(length) for length in (before, now))  # counts have none
    if name == "steps.statistic":
        before, now = before or "events", now or "events"
    return [f"{name} ({_shown(before)} before, {_shown(now)} now)"]


def _by_statistic(value: Any) -> Any:
    """What was told of several statistics by their names; anything else as it is."""
    told = isinstance(value, list) and all(isinstance(each, dict) and "statistic" in each for each in value)
    return {each["statistic"]: each for each in value} if told else value


def _different_lists(before: list[Any], now: list[Any]) -> str:
    old, new = set(map(str, before)), set(map(str, now))
    if old == new:
        return f"the same {len(before):,} in another order"
    if all(isinstance(each, str) for each in (*before, *now)) and sum(map(len, (*before, *now))) <= LONGEST_SHOWN:
        return f"{', '.join(before)} before, {', '.join(now)} now"
    return f"{len(before):,} before, {len(now):,} now: {len(new - old):,} new and {len(old - new):,} gone"


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    if isinstance(value, dict):
        text = " and ".join(f"{name} {part}" for name, part in value.items())
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
