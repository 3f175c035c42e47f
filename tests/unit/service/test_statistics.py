"""Statistics in a service: events carry values, what is released is in their unit, and bad values hurt nobody else."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from fractions import Fraction

import pyarrow as pa
import pytest
import rides
from click.testing import CliRunner
from live_stores import make_twin
from running_service import EXACT, MINUTE, START, configuration, event, running, stream

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.live.stores.open_store import open_store
from eventide.releases.lines import read_line
from eventide.service.config.config_file import read_config

SUMS = {"statistic": "sum:fare", "between": "fare=0,120,0.5", "max_per_step": 2, "filter": "none"}
UNREADABLE, OUT_OF_RANGE = "value cannot be read", "a number is out of range"
HOSTILE = {  # as JSON has it, and what becomes of it: units of the grid, or the reason why the event is refused
    "1e308": 240,
    "5e-324": 0,
    "-0.0": 0,
    "-1e300": 0,
    "1" + "0" * 30: 240,
    "-1" + "0" * 30: 0,
    "12.25": 24,  # halfway, to the even one
    '"12.5"': 25,
    "NaN": OUT_OF_RANGE,
    "Infinity": OUT_OF_RANGE,
    "1e400": OUT_OF_RANGE,
    '"nan"': UNREADABLE,
    '"much"': UNREADABLE,
    '""': UNREADABLE,
    "null": UNREADABLE,
    "true": UNREADABLE,
    "[1]": UNREADABLE,
    '{"fare": 1}': UNREADABLE,
}


def ride(fare, place="north", user="anna", minute=0):
    return event(place, user, minute) | {"fare": fare}


def written(fare, user):
    return json.dumps(event(user=user))[:-1] + f', "fare": {fare}}}'


def values(path):
    with closing(open_store(path, read_only=True)) as store:
        return [read_line(line).values.tolist() for _, line in store.releases()]


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    folder = tmp_path_factory.mktemp("summed")
    with running(configuration(folder, [stream(folder, **SUMS)])) as up:
        up.post([ride(12.5), ride(7, "south"), ride(1e9, user="ben"), ride(3.26, "harbour", "cleo")])
        up.pass_steps()
        yield up


def test_releases_are_in_the_unit_of_the_values(city):
    reader = city.client("read")
    (release,) = reader.get("/v1/streams/city/releases?first=0&last=0").json()["releases"]
    assert release["values"] == [132.5, 7, 3.5]
    assert release["scale"] == [5 * 240] * 3  # of two fares of 120, over a window of five steps
    (row,) = csv.DictReader(io.StringIO(reader.get("/v1/streams/city/releases?last=0&format=csv").text))
    assert [float(row[name]) for name in ("north", "south", "harbour")] == [132.5, 7, 3.5]
    table = pa.ipc.open_stream(reader.get("/v1/streams/city/releases?last=0&format=arrow").content).read_all()
    assert table["harbour"].to_pylist() == [3.5]
    with reader.stream("GET", "/v1/streams/city/stream") as sent:
        data = next(line for line in sent.iter_lines() if line.startswith("data:"))
    assert json.loads(data.removeprefix("data:"))["values"] == [132.5, 7, 3.5]


def test_readers_are_told_what_is_published(city):
    reader = city.client("read")
    told = reader.get("/v1/streams/city").json()
    assert (told["statistic"], told["title"], told["unit"]) == ("sum:fare", "sums of fare", 0.5)
    promised = reader.get("/v1/streams/city/guarantee").json()
    assert promised["sensitivity"] == 480
    assert "one person adds at most 240 (480 units of 0.5) to the sums of fare" in promised["sentence"]
    assert "Values of fare are cut to the range from 0 to 120" in promised["sentence"]


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_hostile_value_is_cut_or_refused_alone(tmp_path, kind):
    with running(configuration(tmp_path, [stream(tmp_path, **SUMS)])) as up:
        rows = [written(fare, f"user {number}") for number, fare in enumerate(HOSTILE)]
        rows += [written(7, "ben"), written(8.5, "ben"), *[written(120, "million")] * 20_000]
        body = f"[{','.join(rows)}]" if kind == "application/json" else "\n".join(rows)
        answer = up.client("ingest").post("/v1/streams/city/events", content=body, headers={"Content-Type": kind})
        refused = {reason: [*HOSTILE.values()].count(reason) for reason in (UNREADABLE, OUT_OF_RANGE)}
        assert answer.status_code == 200, answer.text
        assert answer.json()["refused"] == refused
        places = {place: reason for place, reason in enumerate(HOSTILE.values()) if isinstance(reason, str)}
        assert {one["event"]: one["reason"] for one in answer.json()["events"]} == places
        up.pass_steps()
        good = [units for units in HOSTILE.values() if isinstance(units, int)]
        (release,) = up.client("read").get("/v1/streams/city/releases").json()["releases"]
        assert release["values"][0] == sum(good) / 2 + 7 + 8.5 + 2 * 120
        figures = up.client("operate").get("/metrics").text
        assert (
            f'eventide_raw_refused_events_total{{reason="{UNREADABLE}",stream="city"}} {refused[UNREADABLE]}.0'
            in figures
        )
        assert 'eventide_raw_left_out_events_total{stream="city"} 19998.0' in figures
        assert "refused" not in up.client("read").get("/metrics").text


def test_one_bad_value_does_not_change_how_others_are_read(tmp_path):
    """A batch is read as columns only where nothing in it is strange."""
    fares = [0.1, 0.25, 0.75, 7, 2**53 + 1, 119.75, 1e-9, 33.3333333333, 4.749999999999999]
    with running(configuration(tmp_path, [stream(tmp_path, **SUMS)])) as up:
        for minute, more in enumerate(
            [[], [ride("x", minute=1)], [ride([1], minute=2)], [ride(float("nan"), minute=3)]]
        ):
            rides = [ride(fare, user=f"user {number}", minute=minute) for number, fare in enumerate(fares)]
            headers = {"Content-Type": "application/json"}
            body = json.dumps([*rides, *more])
            answer = up.client("ingest").post("/v1/streams/city/events", content=body, headers=headers)
            assert answer.json()["accepted"] == len(fares)
            up.pass_steps()
        found = values(tmp_path / "city.store")
        assert found == [found[0]] * 4


def test_it_sums_what_the_publisher_of_a_file_sums_and_restarts_change_nothing(tmp_path):
    rides = [ride(number % 130, "north" if number % 2 else "south", f"user {number % 7}") for number in range(60)]
    open_store(tmp_path / "city.store", for_tests=True).close()
    make_twin(tmp_path / "city.store", tmp_path / "twin.db")  # which has the same key
    config = configuration(tmp_path, [stream(tmp_path, **SUMS)])
    for part, steps in ((rides[:20], 0), (rides[20:], 1)):
        config.access.tokens.unlink(missing_ok=True)
        with running(config) as up:
            assert up.post(part).json()["accepted"] == len(part)
            up.pass_steps(steps)
    with (tmp_path / "rides.csv").open("w") as file:
        rows = csv.DictWriter(file, rides[0])
        rows.writeheader()
        rows.writerows(rides)
    mechanism = ev.Uniform(1, 5, ("north", "south", "harbour"), sensitivity=480, noise=ev.noise.Zero())
    options = {"step": "1min", "start": START, "until": "2026-01-01T00:01Z", "time": "time", "user": "user"}
    options |= {"statistic": SUMS["statistic"], "between": SUMS["between"]}
    with ev.Publisher(tmp_path / "rides.csv", mechanism, tmp_path / "twin.db", **options) as twin:
        twin.run()
    assert values(tmp_path / "city.store") == values(tmp_path / "twin.db") != [[0, 0, 0]]


def test_people_and_sums_of_the_same_population_share_its_epsilon(tmp_path):
    shared = {"population": "riders", "epsilon": Fraction(1, 2), "parameters": EXACT}
    streams = [
        stream(tmp_path, "riders", statistic="people", **shared),
        stream(tmp_path, "fares", **SUMS, **shared),
    ]
    config = configuration(tmp_path, streams, populations={"riders": Fraction(1)})
    with running(config) as up:
        for name in up.service.streams:
            up.post([ride(20), ride(20), ride(30, user="ben")], name)
        for name in up.service.streams:
            up.pass_steps(name=name)
        reader = up.client("read")
        released = {
            name: reader.get(f"/v1/streams/{name}/releases").json()["releases"][0] for name in up.service.streams
        }
        assert (released["riders"]["values"][0], released["fares"]["values"][0]) == (2, 70)
        promised = {name: reader.get(f"/v1/streams/{name}/guarantee").json() for name in up.service.streams}
        assert [(one["epsilon"], one["own"]) for one in promised.values()] == [(1, 0.5)] * 2
        assert "different people" in promised["riders"]["sentence"]


def test_people_of_slots_are_released_slot_by_slot(tmp_path):
    """Slots of two minutes; anna comes in both minutes of the first, to another bin in the second."""
    slots = stream(tmp_path, statistic="people/2min", filter="none")
    with running(configuration(tmp_path, [slots])) as up:
        up.post([event("south", "anna", 0), event("south", "ben", 0)])
        up.clock.set(up.service.streams["city"].feed.timeline.begin(0) + MINUTE)
        up.post([event("north", "anna", 1), event("north", "cleo", 1)])
        up.pass_steps()
        reader = up.client("read")
        (release,) = reader.get("/v1/streams/city/releases").json()["releases"]
        assert release["values"] == [1, 2, 0]
        told = reader.get("/v1/streams/city").json()
        assert [told[name] for name in ("statistic", "step", "window")] == ["people/2min", "2min", 3]
        assert told["title"] == "numbers of different people"


def test_people_of_slots_are_released_beside_events_of_every_step(tmp_path):
    """The same slots, and what is counted of every minute; each statistic has a mechanism and a filter of its own."""
    own = {"mechanism": "events=uniform,people/2min=uniform", "filter": "events=repeat,people/2min=none"}
    both = stream(tmp_path, statistic=["people/2min", "events"], split="events=0.5,people/2min=0.5", **own)
    with running(configuration(tmp_path, [both])) as up:
        up.post([event("south", "anna", 0), event("south", "ben", 0)])
        up.pass_steps()
        up.post([event("north", "anna", 1), event("north", "cleo", 1)])
        up.pass_steps()
        reader = up.client("read")
        first, second = reader.get("/v1/streams/city/releases").json()["releases"]
        assert [each["statistic"] for each in (first, second)] == ["events"] * 2
        assert [first["values"], second["values"]] == [[0, 2, 0], [2, 0, 0]]
        assert first["statistics"]["people/2min"]["values"] == [None] * 3
        assert second["statistics"]["people/2min"]["values"] == [1, 2, 0]
        told = reader.get("/v1/streams/city").json()
        assert (told["statistics"], told["step"]) == (["events", "people/2min"], "1min")
        assert told["mechanism"] == own["mechanism"]
        rows = [row for row in table(up, "csv") if row["statistic"] == "people/2min" and row["value"]]
        assert [(row["step"], row["bin"], float(row["value"])) for row in rows][:2] == [
            ("1", "north", 1),
            ("1", "south", 2),
        ]


SEVERAL = {
    "statistic": ["people", "mean:fare", "quantiles:stay"],
    "between": "fare=0,120,0.5",
    "edges": "stay=0,10,20,40",
    "max_per_step": 2,
    "filter": "none",
}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    with running(configuration(folder, [stream(folder, **SEVERAL)])) as up:
        up.post([ride(20) | {"stay": 5}, ride(40, user="ben") | {"stay": 15}, ride(9) | {"stay": "long"}])
        up.pass_steps()
        yield up


def test_several_statistics_are_released_together(three):
    reader = three.client("read")
    told = reader.get("/v1/streams/city").json()
    names = ["people", "mean:fare", "quantiles:stay"]
    assert (told["statistics"][:2], told["unit"], len(told["statistics"])) == (names[:2], None, 3)
    (release,) = reader.get("/v1/streams/city/releases").json()["releases"]
    assert (release["statistic"], release["values"]) == ("people", [2, 0, 0])
    assert release["statistics"]["mean:fare"]["values"] == [30, None, None]  # of nobody there is no mean
    (row,) = [row for row in table(three, "csv") if (row["bin"], row["statistic"]) == ("north", "mean:fare")]
    assert float(row["value"]) == 30
    (row,) = [row for row in table(three, "arrow", "&bin=north") if row["statistic"] == "mean:fare"]
    assert (row["bin"], row["value"]) == ("north", 30)
    (chosen,) = reader.get("/v1/streams/city/releases?bin=south&bin=north").json()["releases"]
    assert (chosen["values"], chosen["statistics"]["mean:fare"]["values"]) == ([0, 2], [None, 30])
    refused = three.client("operate").get("/v1/streams/city/operations").json()["refused"]
    assert refused == {UNREADABLE: 1}
    promised = reader.get("/v1/streams/city/guarantee").json()["sentence"]
    assert f"This covers the releases of {', '.join(names)} together" in promised


@pytest.mark.slow
def test_every_statistic_is_what_a_rational_oracle_says_and_hostile_values_hurt_nobody_else(tmp_path):
    told = rides.EVERY | {"quantiles": list(rides.EVERY["quantiles"]), "max_per_step": 1, "filter": "none"}
    found = []
    for name, rows in (("quiet", rides.HARMLESS), ("attacked", [*rides.HARMLESS, *rides.HOSTILE])):
        (tmp_path / name).mkdir()
        with running(configuration(tmp_path / name, [stream(tmp_path / name, **told)])) as up:
            answer = up.post([event(place, user) | {"fare": fare} for _, user, place, fare in rows])
            assert answer.json()["refused"] == ({UNREADABLE: len(rides.UNREADABLE)} if name == "attacked" else {})
            up.pass_steps()
            (release,) = up.client("read").get("/v1/streams/city/releases").json()["releases"]
        found.append({"people": release["values"]} | {n: e["values"] for n, e in release["statistics"].items()})
    quiet, attacked = found
    for place, fares in enumerate((rides.GOOD, rides.COUNTING)):
        for name, number in rides.true_of(fares).items():
            assert rides.agrees(attacked[name][place], number), (place, name)
    assert {name: values[0] for name, values in quiet.items()} == {name: each[0] for name, each in attacked.items()}


def table(up, form, more=""):
    found = up.client("read").get(f"/v1/streams/city/releases?format={form}{more}")
    if form == "csv":
        return list(csv.DictReader(io.StringIO(found.text)))
    return pa.ipc.open_stream(found.content).read_all().to_pylist()


def test_the_page_to_be_signed_names_the_statistic(tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, **SUMS)])) as up:
        up.pass_steps()
    words = ["guarantee", str(tmp_path / "city.store"), "--out", str(tmp_path / "page.html")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text()
    assert "noisy sums of fare of every minute in 3 bins" in page
    assert "in a step one person adds at most 240 (480 units of 0.5) to the sums of fare" in page


CONFIG = """
[[streams]]
name = "city"
epsilon = 1.0
window = "24h"
step = "1h"
start = 2026-01-01T00:00:00Z
bins = ["north", "south"]
user = "user"
{more}
store = "city.store"
"""


def read(folder, more):
    (folder / "eventide.toml").write_text(CONFIG.format(more=more))
    return read_config(folder / "eventide.toml")


def test_a_configuration_says_it(tmp_path):
    (city,) = read(tmp_path, 'statistic = "sum:fare"\nbetween = "fare=0,120"').streams
    assert city.build_mechanism().sensitivity == 1000
    several = (
        'statistic = ["people", "mean:fare"]\nbetween = "fare=0,120"\nsplit = { people = 0.25, "mean:fare" = 0.75 }'
    )
    (city,) = read(tmp_path, several).streams
    assert city.build_mechanism().statistics_told == ("people", "mean:fare")
    (city,) = read(tmp_path, 'statistic = "people"\ncap = "2/24h"').streams
    assert city.build_mechanism().window_sensitivity == 8


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('statistic = "sum:fare"', "statistic: sum:fare needs the range of fare; give it with between"),
        ('statistic = "median"', "'median' is no statistic"),
        ('statistic = "people/90min"', "90min is no whole number of steps of 1h"),
        ('between = "fare=0,9"', "between is about fare, and events is not"),
        ('statistic = "sum:fare"\nbetween = "fare=9,0"', "is no range"),
        ('statistic = "sum:fare"\nbetween = "fare=0,9"\nlevels = "x.csv"', "levels"),
    ],
)
def test_what_a_configuration_cannot_mean_is_refused(tmp_path, more, says):
    (tmp_path / "x.csv").write_text("bin,shore\nnorth,a\nsouth,b\n")
    with pytest.raises(InputError, match=says):
        read(tmp_path, more)
