"""The known limits, in a sentence each; docs/known-limits.md says more. Which of them apply follows from a setting."""

from __future__ import annotations

from eventide.live.stores.base import StoreSetting

ALWAYS = (
    "Whoever runs the programs sees the events as they come in. The promise is about those who see the releases.",
    "The moment at which a release appears is not protected, and neither is how long it took.",
    "Whoever knows that somebody was there, and asks only in which bin, or about a part of what they did in a step, "
    "learns more: that is hidden with twice epsilon only.",
    "What people do in later windows costs epsilon again: nothing is promised about a habit that goes on for years.",
)
OF_ACCOUNTS = (
    "Only what draws from the account is counted. A publication that never joined it adds to the loss.",
    "Steps count as a whole. A part of the first or the last step of a window is hidden with twice epsilon only.",
    "The seals of the entries show damage, not forgery. To notice forgery, keep an export with a key elsewhere.",
)
WITHOUT_USERS = (
    "Every event is taken for a person of its own: somebody with several events loses several times epsilon."
)
COUNTS = "The counts came ready-made. It is taken on trust that one person adds no more to them than stated here."
CAPPED = "Events above the cap are not counted. So totals are too low where people have many events."
ALONE = (
    "Other publications about the same people add to the loss, unless they are streams of one service or draw from one "
    "account."
)


OF_CELLS = (
    "The event in hand is not protected, nor is whatever held the events before: a broker, the network, the buffers of "
    "the operating system."
)


def is_pan_private(setting: StoreSetting) -> bool:
    """Whether events go into noisy cells, so that memory and store may be seen."""
    return bool(setting.mechanism.get("parameters", {}).get("pan_private"))


def is_about_events(setting: StoreSetting) -> bool:
    """Whether each event is taken for a person of its own: no column says whose it is, and no bound is trusted."""
    return not setting.steps.get("users", True) and not (is_pan_private(setting) and setting.sensitivity > 1)


def limits_of(setting: StoreSetting) -> list[str]:
    """The limits that apply to a store with this setting."""
    steps = setting.steps
    found = []
    if steps.get("source") == "counts":
        found.append(COUNTS)
    elif is_about_events(setting):
        found.append(WITHOUT_USERS)
    if is_pan_private(setting):
        found.append(OF_CELLS)
    if setting.cap is not None:
        found.append(CAPPED)
    found += OF_ACCOUNTS[:2] if "account" in steps else [ALONE]
    return [*found, *ALWAYS]
