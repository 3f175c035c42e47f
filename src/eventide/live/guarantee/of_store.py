"""What the page says of a store: from its settings and its ledger, which is verified."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

from eventide.events.durations import as_unit, in_words, milliseconds
from eventide.events.several_statistics import SeveralStatistics
from eventide.events.statistic_names import statistic_of
from eventide.events.statistics import Statistic
from eventide.live.addresses import is_address
from eventide.live.guarantee.limits import is_about_events, is_pan_private, limits_of
from eventide.live.guarantee.over_epochs import moment, over_all, promises, sentences, span
from eventide.live.guarantee.page import Budget, Part
from eventide.live.guarantee.promise import (
    EVERYBODY,
    OF_ALL_STREAMS,
    OF_ONE_ALONE,
    THE_PEOPLE,
    no_promise,
    plain_promise,
    share_in,
)
from eventide.live.stores.base import Store, StoreSetting
from eventide.live.stores.budget_report import BudgetReport, budget_report, told
from eventide.live.stores.epochs import setting_text
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism_class
from eventide.mechanisms.window_baselines import WindowMechanism
from eventide.parameters import parameter_defaults
from eventide.privacy.amounts import NANO
from eventide.privacy.guarantees import bound_of_step

MOST_BINS = 24  # named on the page


def store_part(store: Store, place: str | Path, until: int | None = None) -> Part:
    """Everything about a store, from what it holds of the steps before `until`."""
    found = budget_report(store, until)
    setting, verified = found.epochs[-1].setting, found.verification
    answers = {
        "What is published?": _published(setting),
        "About whom?": f"the population {setting.people!r}",
        "From which events?": _events(setting),
        "How much of one person counts?": _counted(setting),
        "How many steps were published?": _steps(found),
        "Who may read what?": _readers(place),
        "What is kept raw, and for how long?": _raw(setting),
        "How long are releases kept?": _kept(found.kept_from),
    }
    if found.intrusions:
        answers["Who has seen the memory?"] = "\n".join(f"an intrusion was {told(each)}" for each in found.intrusions)
    past = promises(found.epochs, verified)
    if changed := sentences(past, setting):
        answers["What was promised, and when?"] = "\n".join(changed)
    whole, released = over_all(past), "everything that is published"
    if share := share_in(found.guarantee):
        answers["With what is the budget shared?"] = share.told
        released = OF_ALL_STREAMS
    if "account" in setting.steps:
        released = OF_ONE_ALONE
        shared = f"with everything that draws from the account {setting.steps['account']}, which has a page of its own"
        answers["With what is the budget shared?"] = shared
    instead = _no_promise(found)
    kept = "no window was over epsilon" if len(past) == 1 else "no window was over the epsilon of its time"
    fullest = f"{verified.worst / NANO:g}" + ("" if len(past) == 1 else f" of {verified.worst_allowed / NANO:g}")
    return Part(
        f"What is published about {THE_PEOPLE if setting.people == EVERYBODY else setting.people}",
        instead
        or plain_promise(
            setting.people, span(whole.window, setting), whole.epsilon, released, events=is_about_events(setting)
        ),
        [f"For experts: {found.guarantee}"],
        _budget(found),
        [*answers.items()],
        limits_of(setting),
        f"Every window was added up from the stored charges of {found.next_step} steps: "
        f"{kept if verified.holds else 'the promise was not kept'}, and the fullest held {fullest}. "
        f"Digest of settings and charges: {_digest(store, found)}.",
        verified.problems,
        instead,
        past,
    )


def _no_promise(found: BudgetReport) -> str | None:
    """What is said instead where nothing is promised now, or was not of something that was measured before."""
    measured = [
        epoch.guarantee
        for epoch, spending in zip(found.epochs, found.verification.spending, strict=True)
        if len(spending.touched)
    ]
    return next(filter(None, map(no_promise, [found.guarantee, *measured])), None)


def _steps(found: BudgetReport) -> str:
    restored = [
        f"\nThe store was restored from a backup before step {epoch.first_step}. Steps that were released after the "
        "backup was made are not in it. They count as fully spent"
        for epoch in found.epochs
        if epoch.restored
    ]
    return f"{found.next_step}; settings so far: {len(found.epochs)}" + "".join(restored)


def _digest(store: Store, found: BudgetReport) -> str:
    """A digest of all settings and charges, the same for the same ledger wherever it is kept."""
    settings = [f"{epoch.first_step} {epoch.measured_from} {setting_text(epoch.setting)}" for epoch in found.epochs]
    charges = [
        f"{entry.step} {entry.kind} {entry.amount} {entry.lane}"
        for entry in store.entries()
        if entry.step < found.next_step
    ]
    return "sha256:" + hashlib.sha256("\n".join([*settings, *charges]).encode()).hexdigest()


def _published(setting: StoreSetting) -> str:
    every = f" of every {as_unit(setting.steps['length'])}" if "length" in setting.steps else " of every step"
    named = ", ".join(setting.names[:MOST_BINS]) + (", ..." if len(setting.bins) > MOST_BINS else "")
    asked = f"; answers to {len(setting.queries['queries'])} window queries" if setting.queries else ""
    return (
        f"noisy {_titles(setting, every)} in {len(setting.bins):,} bins ({named}), by the "
        f"mechanism {setting.measured_by or 'of one’s own'}{_histograms(setting)}{asked}"
    )


def _titles(setting: StoreSetting, every: str) -> str:
    """What is published of every step, and of slots of several steps besides."""
    statistic = _statistic(setting)
    parts = statistic.parts if isinstance(statistic, SeveralStatistics) else (statistic,)
    of_steps = ", ".join(part.title for part in parts if not part.slots)
    slots = [(part.title, as_unit(milliseconds(slot))) for part in parts for slot in part.slots]
    return of_steps + every + "".join(f", and {title} of every {length}," for title, length in slots)


def _histograms(setting: StoreSetting) -> str:
    """What is published of sliding windows, which the same epsilon covers."""
    try:
        found = mechanism_class(str(setting.mechanism.get("name")))
    except (KeyError, ValueError):
        return ""
    if not issubclass(found, WindowMechanism):
        return ""
    span = setting.mechanism["parameters"].get("span", parameter_defaults(found)["span"])
    return f"; at every step also histograms of the last {span} steps, which the same budget covers"


def _events(setting: StoreSetting) -> str:
    steps = setting.steps
    if "start" not in steps:
        return "from counts that came ready-made"
    who = "each with the person it belongs to" if steps.get("users") else "each taken for a person of its own"
    if is_pan_private(setting) and setting.sensitivity > 1:
        who = f"trusted to be at most {setting.sensitivity} of one person in a step"
    return f"from events since {steps['start']}, {who}, cut into steps by their own time in the zone {steps['zone']}"


def _counted(setting: StoreSetting) -> str:
    if "max_per_step" not in setting.steps:
        return bound_of_step(setting.sensitivity)
    statistic, most = _statistic(setting), setting.steps["max_per_step"]
    sentences = [statistic.bound(most), *statistic.assumptions(most)]
    if setting.cap is not None:
        sentences.append(f"only {statistic.first_ones(setting.cap['events'])} in every block of {_block(setting)}")
    return "\n".join(sentences)


def _block(setting: StoreSetting) -> str:
    assert setting.cap is not None
    return in_words(setting.cap["block"] * setting.steps["length"])


def _statistic(setting: StoreSetting) -> Statistic:
    return statistic_of(setting.steps).for_bins(len(setting.bins))


def _readers(place: str | Path) -> str:
    if is_address(place):
        return "the store: whoever has rights on its schema in the database; releases: whoever they are delivered to"
    mode = stat.S_IMODE(Path(place).stat().st_mode)
    alone = "its owner alone" if not mode & 0o077 else "others as well as its owner: run chmod 600"
    return f"the file of the store: {alone} (mode {mode:o}); releases: whoever they are delivered to"


def _raw(setting: StoreSetting) -> str:
    if "start" not in setting.steps:
        return "nothing"
    if is_pan_private(setting):
        return "nothing: each event goes into noisy cells as it comes, and nowhere else"
    raw = ["events of a step, in the store or its source: until the step is published"]
    if setting.cap is not None:
        raw.append(f"keyed hashes of the people of whom something counted: for {_block(setting)}")
    slots = [in_words(milliseconds(slot)) for slot in _statistic(setting).slots]
    raw += [f"keyed hashes of who was in which bin: until the slot of {length} is over" for length in slots]
    if _holds_sums(setting):
        raw.append("sums of groups of steps: until the group is complete")
    return "\n".join(raw)


def _holds_sums(setting: StoreSetting) -> bool:
    try:
        found = mechanism_class(str(setting.mechanism.get("name")))
    except (KeyError, ValueError):
        return True  # of one's own: in doubt yes
    return found.holds_raw is not Mechanism.holds_raw or setting.queries is not None


def _kept(first: int) -> str:
    return f"those from step {first} on are kept; charges are kept for ever" if first else "all so far, and all charges"


def _budget(found: BudgetReport) -> Budget | None:
    setting = found.epochs[-1].setting
    if not found.next_step:
        return None
    last = found.next_step - 1
    ends = ("step 0", f"step {last}")
    if "start" in setting.steps:
        ends = (moment(0, setting), moment(last, setting))
    held = found.in_windows().tolist()
    limits = [each.epoch.setting.epsilon / NANO for each in found.verification.spending for _ in each.windows]
    windows = {epoch.setting.window for epoch in found.epochs}
    length = f" of {setting.window} steps" if len(windows) == 1 else ""
    what = f"Budget held by the window{length} that ends at each step"
    return Budget(list(range(len(held))), held, limits, ends, what)
