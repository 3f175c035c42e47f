"""Every statistic of files and frames is what a rational oracle says, and hostile values change nothing for others."""

from __future__ import annotations

import pytest
from rides import (
    COUNTING,
    EVERY,
    EXACT,
    GOOD,
    HARMLESS,
    HOSTILE,
    STREAM,
    UNREADABLE,
    agrees,
    as_lines,
    as_numbers,
    frame_of,
    true_of,
    write_rides,
)

import eventide as ev

TOLD = STREAM | {"max_per_step": 1} | EXACT | EVERY


def given(path, rows, folder):
    """The rides as they come on a path."""
    if path == "csv":
        return write_rides(folder, rows)
    if path == "jsonl":
        (folder / "rides.jsonl").write_text(as_lines(rows))
        return folder / "rides.jsonl"
    return frame_of(rows) if path == "frame of texts" else as_numbers(rows)


def released(source):
    """By bin and statistic, the values of all steps."""
    published, found = ev.publish(source, **TOLD), {}
    for row in published.to_arrow().select(["bin", "statistic", "value"]).to_pylist():
        found.setdefault((row["bin"], row["statistic"]), []).append(row["value"])
    return found, published.operators_only.refused


@pytest.mark.parametrize("path", ["csv", "jsonl", "frame of texts", "frame of numbers"])
def test_every_statistic_is_what_a_rational_oracle_says_and_hostile_values_hurt_nobody_else(tmp_path, path):
    attacked, refused = released(given(path, [*HARMLESS, *HOSTILE], tmp_path))
    assert refused == {"value cannot be read": len(UNREADABLE)}
    for place, values in (("north", GOOD), ("south", COUNTING)):
        true, nothing = true_of(values), true_of([])
        assert {name for bin_, name in attacked if bin_ == place} == true.keys()
        for name, number in true.items():
            first, *others = attacked[place, name]
            assert agrees(first, number), (place, name, first, number)
            assert all(agrees(each, nothing[name]) for each in others), (place, name)
    quiet, _ = released(given(path, HARMLESS, tmp_path))
    north = [{name: values for (place, name), values in each.items() if place == "north"} for each in (quiet, attacked)]
    assert north[0] == north[1]


@pytest.mark.parametrize("statistic", EVERY["statistic"])
def test_a_statistic_alone_says_what_it_says_beside_others(statistic):
    kind = statistic.partition(":")[0]
    own = {"sum": ["between"], "mean": ["between"], "quantiles": ["edges", "quantiles"], "people": []}[kind]
    alone = STREAM | {"max_per_step": 1} | EXACT | {"statistic": statistic} | {name: EVERY[name] for name in own}
    rows = frame_of([ride for ride in [*HARMLESS, *HOSTILE] if ride[-1] not in UNREADABLE])
    found, _ = released(rows)
    names = [name for place, name in found if place == "south" and name.startswith(kind.rstrip("s"))]
    wanted = {name: found["south", name] for name in names or [statistic]}
    table = ev.publish(rows, **alone).to_arrow()
    told = [row for row in table.to_pylist() if row["bin"] == "south"]
    assert {name: [row["value"] for row in told if row.get("statistic", name) == name] for name in wanted} == wanted
