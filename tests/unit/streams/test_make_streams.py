"""Named real streams are made from their raw files: every maker on a tiny artificial one, and what the folder says."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eventide.streams.real import REAL_STREAMS, read_real, why_missing

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "make_streams.py"
REPORT = "FIPS,Admin2,Province_State,Country_Region,Confirmed,Deaths\n"
RAW = {
    "unemployment.csv": "DATE,LNU03000018\n1972-01-01,247\n1972-02-01,286\n",
    "death.csv": "SEASON,WEEK,NUM INFLUENZA DEATHS\n2022-23,40,9\n2021-22,1,5\n2021-22,40,4\n2021-22,1,5\n",
    "ILINet.csv": "YEAR,WEEK,ILITOTAL\n2002,39,7\n2002,40,1\n2003,1,4\n2002,40,2\n",
    "invocation_count.csv": "period,count\n1998-04-30 21:59:00,5\n1998-04-30 22:00:00,1\n1998-04-30 23:36:00,2\n",
    "cal-inflow-2.csv": "date,observed\n2005-07-24T00:00:00Z,3\n",
    "adult.data": "39, x, <=50K\n50, y, >50K\n\n",
    "hour.csv": "dteday,hr,casual,registered\n2011-01-02,1,3,13\n",
    "ilinet_state.csv": "region,year,week,ilitotal\nUtah,2010,40,2\nOhio,2010,41,NA\nUtah,2023,39,8\n",
    "td.csv": "9,,\n1,2,3\n4,5,6\n",
    "tp_output.csv": "9\n1,2\n0,6\n",
    "kosarak.dat": "2 1 2\n1\n" + "3\n" * 48 + "10 9\n",
    "by-day/2010-12-02.csv": (
        "InvoiceNo,StockCode,Quantity,InvoiceDate,CustomerID\n"
        "5,85123a,6,2010-12-02 08:26:00,17850.0\n5,7,6,2010-12-01 08:26:00,17850.0\nC5,7,6,2010-12-02 08:26:00,1.0\n"
        "6,7,-6,2010-12-02 08:26:00,17850.0\n6,7,6,2010-12-02 08:26:00,\n"
    ),
    "flights.csv": (
        "year,month,day,sched_dep_time,tailnum,dest\n2013,1,2,515,N1,IAH\n2013,1,1,2359,N2,ATL\n2013,1,1,500,,LGA\n"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("streams")
    for name, text in RAW.items():
        (place / "raw" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "raw" / name).write_text(text)
    (place / "raw" / "daily").mkdir()
    days = np.arange("2020-03-22", "2021-07-15", dtype="datetime64[D]").tolist()
    for number, day in enumerate(days):
        city = f"36061,New York City,New York,US,{3 * number},{number}\n36005,Bronx,New York,US,1,{number}\n"
        falls = f"1001,A,Alabama,US,{100 - number},0\n" if number else ""
        others = "90001,Unassigned,Alabama,US,0,7\n,,Grand Princess,US,9,9\n,,,France,5,5\n"
        (place / "raw" / "daily" / f"{day:%m-%d-%Y}.csv").write_text(REPORT + city + falls + others)
    done = subprocess.run([sys.executable, SCRIPT, place / "raw", place / "made"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place


def text(folder, name):
    return gzip.decompress((folder / "made" / f"{name}.csv.gz").read_bytes()).decode()


def counts(folder, name):
    return read_real(name, folder / "made").counts


@pytest.mark.slow
def test_every_named_stream_has_a_maker_and_is_found_in_the_folder(folder):
    assert [name for name in REAL_STREAMS if why_missing(name, folder / "made")] == []


@pytest.mark.slow
def test_each_maker_does_what_it_says(folder):
    assert counts(folder, "unemployment").ravel().tolist() == [247, 286]
    assert counts(folder, "flu_death").ravel().tolist() == [4, 5]
    assert counts(folder, "flu_outpatient").ravel().tolist() == [3, 4]
    assert counts(folder, "worldcup_total").ravel()[:3].tolist() == [1, 2, 0]
    assert counts(folder, "calit2_inflow").ravel().tolist() == [3]
    assert counts(folder, "adult_income").ravel().tolist() == [0, 1]
    assert np.argwhere(counts(folder, "bike_sharing")).tolist() == [[25, 0], [25, 1]]
    assert text(folder, "state_flu") == "t,Ohio,Utah\n0,0,2\n1,0,0\n"
    assert text(folder, "tdrive_beijing") == "t,c00,c01,c02\n0,1,2,3\n1,4,5,6\n"
    assert text(folder, "taxi_porto") == "t,c000,c001\n0,1,2\n1,0,6\n"
    assert text(folder, "kosarak_head") == "t,bin,count\n0,i1,2\n0,i2,1\n0,i3,48\n1,i9,1\n1,i10,1\n"
    assert text(folder, "retail_events").splitlines()[1:] == [
        "2010-12-01 08:26,17850,7",
        "2010-12-02 08:26,17850,85123A",
    ]
    assert text(folder, "retail_product_day") == "t,bin,count\n0,7,1\n1,85123A,1\n"
    assert text(folder, "nycflights_events").splitlines()[1:] == ["2013-01-01 23:59,N2,ATL", "2013-01-02 05:15,N1,IAH"]
    assert text(folder, "nycflights_dest").splitlines()[0] == "t,ATL,IAH,LGA"
    assert np.argwhere(counts(folder, "nycflights_dest")).tolist() == [[23, 0], [29, 1]]


@pytest.mark.slow
def test_totals_become_what_is_new_and_corrections_downwards_are_none(folder):
    assert text(folder, "covid_cases_state").splitlines()[:3] == ["t,Alabama,New York", "0,99,3", "1,0,3"]
    assert text(folder, "covid_deaths_county").splitlines()[:3] == ["t,01001,36061", "0,0,2", "1,0,2"]
    assert counts(folder, "covid_deaths_county").shape == (479, 2)


@pytest.mark.slow
def test_a_check_finds_a_changed_stream(folder):
    def check(*names):
        return subprocess.run(
            [sys.executable, SCRIPT, folder / "raw", folder / "made", *names, "--check"], capture_output=True, text=True
        )

    assert check("unemployment", "flu_death").returncode == 0
    (folder / "raw" / "cal-inflow-2.csv").write_text("date,observed\n2005-07-24T00:00:00Z,4\n")
    assert (check("calit2_inflow").returncode, check("calit2_inflow").stdout) == (1, "calit2_inflow DIFFERS\n")


def test_a_raw_file_that_is_another_is_named_and_the_others_are_made(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    for name in ("unemployment.csv", "td.csv", "hour.csv"):
        (raw / name).write_text({"unemployment.csv": "DATE,other\n1972-01-01,247\n", "td.csv": ""}.get(name, RAW[name]))
    done = subprocess.run([sys.executable, SCRIPT, raw, tmp_path / "made"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "unemployment.csv is not as in XiaochenLi-w/" in done.stdout
    assert "(KeyError: 'LNU03000018')" in done.stdout
    assert "tdrive_beijing FAILED: " in done.stdout
    assert why_missing("bike_sharing", tmp_path / "made") is None
    done = subprocess.run([sys.executable, SCRIPT, tmp_path / "rae", tmp_path / "made"], capture_output=True, text=True)
    assert (done.returncode, "there is no folder" in done.stderr) == (2, True)
