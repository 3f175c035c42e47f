"""The file of events that crash tests of the publisher read, and the points at which they may be killed meanwhile."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from publisher_lives import BINS

from eventide.live.faults import POINTS

STEPS = 60
BEGIN = datetime(2024, 3, 30, tzinfo=UTC)
ELSEWHERE = ("keep", "migrati", "spark", "charge", "settle", "forgetting", "naming")  # other feeds, stores and verbs
OF_A_FILE = [point for point in POINTS if not any(word in point for word in ELSEWHERE)]


def write_events(path, seed):
    """Events of 40 users in some disorder, many more than are counted, with rows that cannot be."""
    chance = random.Random(seed)
    lines = []
    for hour in range(STEPS):
        for _ in range(chance.randrange(40)):
            at = BEGIN + timedelta(hours=hour, seconds=chance.randrange(3600))
            place = chance.choice([*BINS, "north", "north", "nowhere"])
            lines.append((at - timedelta(hours=chance.choice([0, 0, 3])), f"user {chance.randrange(40)}", place))
    rows = [f"{at.isoformat()},{user},{place}" for at, user, place in lines if at >= BEGIN]
    rows += [f"{(BEGIN + timedelta(hours=STEPS)).isoformat()},late,north", "not a time,user 1,north"]
    path.write_text("\n".join(["timestamp,user,bin", *rows]) + "\n")


FILE = {
    "step": "1h",
    "start": BEGIN.isoformat(),
    "until": (BEGIN + timedelta(hours=STEPS)).isoformat(),
    "user": "user",
}
