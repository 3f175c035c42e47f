"""A ward that is added while the service runs: the open page shows it, no step is lost, nothing is frozen."""

from __future__ import annotations

import pytest
from running_service import configuration, event, running, stream, wait_until

pytestmark = pytest.mark.browser

LEVELS = "bin,clinic\nW1,surgery\nW2,surgery\nW3,eyes\n(spare 1),eyes\n(spare 2),skin\n"


def settings(folder, text=LEVELS):
    (folder / "wards.csv").write_text(text)
    bins = tuple(line.split(",")[0] for line in text.splitlines()[1:] if "spare" not in line)
    return stream(folder, bins=bins, levels=str(folder / "wards.csv"), spare_bins=3)


@pytest.fixture
def hospital(tmp_path):
    with running(configuration(tmp_path, [settings(tmp_path)])) as up:
        let_pass(up, range(4))
        yield up


def let_pass(up, minutes, wards=("W1", "W3")):
    for minute in minutes:
        up.post([event(ward, f"{ward} {person}", minute) for ward in wards for person in range(5)])
        up.pass_steps()


@pytest.fixture
def page(browser, hospital):
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(f"{hospital.address}/#token={hospital.tokens['read']}")
    opened.locator("#status[data-state=live]").wait_for()
    opened.wait_for_function("document.getElementById('open-sum').textContent !== ''")
    yield opened
    context.close()
    assert complaints == []


def names(page):
    return page.locator("#heat-names span").all_inner_texts()


def test_a_ward_is_added_and_everything_goes_on(page, hospital, tmp_path):
    page.locator("#divided").select_option("bin")
    assert names(page) == ["W1", "W2", "W3"]  # spare bins are nobody's concern
    page.locator("#divided").select_option("clinic")
    assert names(page) == ["surgery", "eyes"]
    hospital.service.streams["city"].take_names(settings(tmp_path, LEVELS + "W4,skin\n"))
    wait_until(lambda: "W4" in hospital.service.streams["city"].bins)
    let_pass(hospital, range(4, 8), ("W1", "W3", "W4"))
    page.wait_for_function("() => document.getElementById('status-text').textContent.includes('step 7')")
    page.wait_for_function("() => document.getElementById('heat-names').textContent.includes('skin')")
    assert names(page) == ["surgery", "eyes", "skin"]
    page.locator("#divided").select_option("bin")
    assert names(page) == ["W1", "W2", "W3", "W4"]
    releases = hospital.client("read").get("/v1/streams/city/releases").json()["releases"]
    assert [release["step"] for release in releases] == list(range(8))
    assert all(release["fresh"] for release in releases)
    assert [release["values"][4] for release in releases] == [0] * 5 + [5] * 3  # (spare 2), which is W4 now
    assert page.locator("#open-sum").inner_text() == f"{sum(releases[-1]['values']):,}" == "15"
    page.locator("#search").fill("W4")
    assert "W4" in page.locator("#matches").inner_text()
    page.locator("#search").fill("spare")
    assert "no bin has this in its name" in page.locator("#matches").inner_text()
    page.screenshot(path=tmp_path / "spare.png", full_page=True)
