"""Writes the rows of a store, each with the digest that `checked_rows` looks for, in a transaction of its caller."""

from __future__ import annotations

import json

from eventide.live.stores.base import Commit, Epoch, PlanStep
from eventide.live.stores.checked_rows import StoredStep
from eventide.live.stores.database import Database
from eventide.live.stores.digests import digest
from eventide.live.stores.setting_changes import setting_text


class WrittenRows:
    """Changes the rows of a database."""

    def __init__(self, database: Database) -> None:
        self._change, self._change_each = database.change, database.change_each

    def step(self, row: StoredStep, commit: Commit) -> list[str]:
        """Write a step and move the head to it; the tables in which anything raw was erased."""
        self._change("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
        position = json.dumps(commit.position)
        self._change(
            "UPDATE head SET step = ?, chain = ?, position = ?, seal = ?",
            *(row.step, row.chain, position, digest(row.chain, position)),
        )
        if commit.snapshot is not None:
            self._change(
                "INSERT INTO snapshot VALUES (1, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET step = excluded.step, "
                "state = excluded.state, digest = excluded.digest",
                *(row.step, commit.snapshot, digest(row.step, commit.snapshot)),
            )
        if commit.plan is not None:
            self._plan(row.step, commit.plan)
        replaced = {"plan": commit.plan, "snapshot": commit.snapshot, "head": commit.position}
        over = [table for table in ("kept", "batch") if self._change(f"DELETE FROM {table} WHERE step <= ?", row.step)]
        return over + [table for table, state in replaced.items() if state is not None]

    def _plan(self, step: int, plan: PlanStep) -> None:
        """Keep what a step left of the plan; open slots of before are erased, and behind a snapshot all the rest."""
        self._change("DELETE FROM plan" if plan.whole else "DELETE FROM plan WHERE part = 'open'")
        parts = ("snapshot" if plan.whole else "released", plan.state), ("open", plan.open_slots)
        rows = [(step, part, state, digest(step, part, state)) for part, state in parts]
        self._change_each("INSERT INTO plan VALUES (?, ?, ?, ?)", rows)

    def kept(self, tallies: list[tuple[int, bytes]], batch: str | None, reach: int) -> None:
        """Keep open events, and the name of their batch until step `reach` is released."""
        rows = [(step, tally, digest(step, tally)) for step, tally in tallies]
        self._change_each("INSERT INTO kept (step, tally, digest) VALUES (?, ?, ?)", rows)
        if batch is not None:
            self._change("INSERT INTO batch VALUES (?, ?, ?)", batch, reach, digest(batch, reach))

    def delivery(self, sink: str, step: int) -> None:
        """Remember how far a sink is."""
        update = "step = excluded.step, digest = excluded.digest"
        query = f"INSERT INTO delivery VALUES (?, ?, ?) ON CONFLICT (sink) DO UPDATE SET {update}"
        self._change(query, sink, step, digest(sink, step))

    def new_epoch(self, epoch: Epoch) -> None:
        """Write an epoch; the state of the mechanism and the plan before and the events they were to see go."""
        self.epoch(epoch)
        for table in ("snapshot", "plan", "kept"):
            self._change(f"DELETE FROM {table}")

    def withdrawal(self, epoch: int | None, kept_before: int) -> None:
        """Erase the events that were kept after a row, and an epoch of which nothing was released."""
        self._change("DELETE FROM kept WHERE id > ?", kept_before)
        if epoch is not None:
            self._change("DELETE FROM epoch WHERE number = ?", epoch)

    def epoch(self, epoch: Epoch) -> None:
        """Write an epoch, or its sentence anew."""
        numbers = (epoch.number, epoch.first_step, epoch.measured_from, int(epoch.restored))
        row = (*numbers, setting_text(epoch.setting), epoch.guarantee)
        columns = "number, first_step, measured_from, restored, setting, guarantee, digest"
        update = "guarantee = excluded.guarantee, digest = excluded.digest"
        self._change(
            f"INSERT INTO epoch ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET {update}",
            *(*row, digest(*row)),
        )
