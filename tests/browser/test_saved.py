"""What the dashboard shows can be saved: as CSV with the columns and numbers of long releases, and as a picture."""

from __future__ import annotations

import csv
import io
import struct
from fractions import Fraction

import pytest
from running_service import configuration, event, running, stream

pytestmark = pytest.mark.browser

ODD = 'the "old", quay'
BINS = ("Alder Green", "Alder Road", ODD)
LEVELS = {"quarter": ["Alder", "Alder", "Quay"]}
FARES = {"statistic": ["people", "mean:fare"], "between": "fare=0,10,0.1", "filter": "none"}


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    streams = [
        stream(folder, bins=BINS, levels=LEVELS),
        stream(folder, "plain", bins=BINS, mechanism="ba", epsilon=Fraction(1), parameters={}),
        stream(folder, "fares", **FARES),
        stream(folder, "pages", mechanism="rg-baseline", window=1, parameters={"span": 3}),
    ]
    with running(configuration(folder, streams), for_tests=True) as up:
        for minute in range(6):
            people = [
                (bin, f"{bin} {person}") for place, bin in enumerate(BINS) for person in range(3 + place + minute)
            ]
            for name in ("city", "plain"):
                up.post([event(bin, user, minute) for bin, user in people], name)
            up.post([event("north", name, minute) | {"fare": 2.5} for name in ("anna", "ben")], "fares")
            up.post([event("north", "anna", minute)], "pages")
            up.pass_steps_of_all()
        yield up


@pytest.fixture
def opened(browser, up):
    contexts, complaints = [], []

    def open_page(name):
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"{up.address}/?stream={name}#token={up.tokens['read']}")
        page.locator("#chart .scatterlayer path.js-line").first.wait_for(state="attached")
        page.locator("#heat-times span").first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def saved(page, button):
    """The name and the bytes of the file that a button gives."""
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def rows(text):
    """A table by what names its rows; numbers as numbers."""
    told = list(csv.DictReader(io.StringIO(text)))
    named = ("step", "start", "level", "bin", "statistic")
    return list(told[0]), {
        tuple(row[name] for name in named if name in row): [
            float(row[name]) if row[name] else None for name in ("value", "low", "high", "scale")
        ]
        + [row["fresh"]]
        for row in told
    }


def long(up, name):
    asked = {"format": "csv", "layout": "long", "limit": 1000}
    return rows(up.client("read").get(f"/v1/streams/{name}/releases", params=asked).text)


@pytest.mark.parametrize("name", ["city", "plain", "fares", "pages"])
def test_the_map_is_saved_with_the_columns_and_numbers_of_long_releases(opened, up, name):
    page = opened(name)
    if name == "city":
        page.locator("#divided").select_option("bin")
    file, content = saved(page, "Save the map as CSV")
    assert file == f"{name}-map-20260101T0000-20260101T0005.csv"
    columns, told = rows(content.decode())
    expected, every = long(up, name)
    assert columns == expected
    bins = 3 if name == "city" else len(up.service.streams[name].bins)
    assert len(told) == 6 * bins
    assert told == {row: every[row] for row in told}


def test_the_chart_is_saved_with_its_groups_statistic_and_times(opened, up):
    page = opened("city")
    page.get_by_role("combobox", name="Find a bin").fill("quay")
    page.keyboard.press("Enter")
    _, content = saved(page, "Save the chart as CSV")
    columns, told = rows(content.decode())
    assert columns == ["step", "start", "level", "bin", "value", "low", "high", "scale", "fresh"]
    assert {row[2:] for row in told} == {("total", "total"), ("quarter", "Quay")}
    assert told == {row: long(up, "city")[1][row] for row in told}
    page.evaluate(
        "Plotly.relayout('chart', {'xaxis.range[0]': '2026-01-01 00:01:30', 'xaxis.range[1]': '2026-01-01 00:03:30'})"
    )
    page.locator("#live").wait_for()
    file, content = saved(page, "Save the chart as CSV")
    assert file == "city-chart-20260101T0002-20260101T0003.csv"
    assert {row[0] for row in rows(content.decode())[1]} == {"2", "3"}
    page.get_by_label("Stream").select_option("fares")
    page.locator("#statistic").select_option("mean:fare")
    page.locator("#series-title", has_text="mean:fare").wait_for()
    page.locator("#chart .ytitle", has_text="mean:fare").wait_for()
    _, content = saved(page, "Save the chart as CSV")
    assert {row[3] for row in rows(content.decode())[1]} == {"mean:fare"}
    assert rows(content.decode())[1]["0", "2026-01-01T00:00:00+00:00", "north", "mean:fare"][0] == 2.5


@pytest.mark.parametrize("what", ["chart", "map"])
def test_pictures_are_whole(opened, what, tmp_path):
    page = opened("plain")
    file, content = saved(page, f"Save the {what} as PNG")
    assert file == f"plain-{what}-20260101T0000-20260101T0005.png"
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    assert (width > 1000, height > 400) == (True, True)
    shades = page.evaluate(
        """async (bytes) => {
            const image = await createImageBitmap(new Blob([Uint8Array.from(bytes)], { type: "image/png" }));
            const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
            context.drawImage(image, 0, 0);
            const pixels = context.getImageData(0, 0, image.width, image.height).data;
            return new Set(new Uint32Array(pixels.buffer)).size;
        }""",
        list(content),
    )
    assert shades > 20
    (tmp_path / file).write_bytes(content)
