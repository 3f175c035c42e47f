"""The dashboard in a real browser: it lives, it can be searched, it keeps operators' figures to operators, it is quiet.

A screenshot of each view is written to the folder named by EVENTIDE_SCREENSHOTS, or else to a temporary one.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest
from page_waits import wait_for_count
from running_service import configuration, event, running, stream

from eventide.filters.posterior_median import PosteriorMedian
from eventide.windows.workload import Query

pytestmark = pytest.mark.browser

DESKTOP = {"viewport": {"width": 1360, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
NASTY = '<img src=x onerror="document.title=1">&amp;<b>bold</b>'
BINS = (*(f"road {number:04}" for number in range(1500)), "Harbour Bridge", NASTY)
WINDOW = 5
QUERIES = (Query(5, 1, "five minutes"), Query(10, 5, NASTY), Query(60, 60))


@pytest.fixture
def city(tmp_path):
    asked = {"queries": QUERIES, "queries_epsilon": Fraction(1, 5), "queries_of": "total"}
    settings = stream(tmp_path, bins=BINS, window=WINDOW, parameters={}, mechanism="ba", **asked)
    with running(configuration(tmp_path, [settings]), for_tests=False) as up:
        up.minute = 0
        for minute in range(12):
            let_a_minute_pass(up, 30 + minute)
        yield up


@pytest.fixture
def opened(browser, city):
    """Open the page with a token of some role, and on closing require that it was quiet: no complaint, no outsider."""
    contexts, requests, complaints = [], [], []

    def open_page(role="read", **screen):
        contexts.append(browser.new_context(**(screen or DESKTOP)))
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{city.address}/#token={city.tokens[role]}" if role else city.address)
        if role:
            page.locator("#chart .scatterlayer path.js-line").first.wait_for()
            page.locator("#status[data-state=live]").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert requests
    assert [url for url in requests if not url.startswith((city.address, "data:", "blob:"))] == []
    refused = ("status of 401", "status of 403", "ERR_INTERNET_DISCONNECTED")  # which the browser itself tells of
    assert [each for each in complaints if not any(part in each for part in refused)] == []


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    folder = Path(os.environ.get("EVENTIDE_SCREENSHOTS") or tmp_path_factory.mktemp("dashboard"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def let_a_minute_pass(up, people):
    """People at the bridge in this minute, and the release that tells of it."""
    up.post([event("Harbour Bridge", str(person), up.minute) for person in range(people)])
    up.post([event(f"road {person:04}", f"r{person}", up.minute) for person in range(0, 1500, 3)])
    up.pass_steps()
    up.minute += 1


def released_step(page):
    return int(page.locator("#status-text").inner_text().split("step ")[1].split(" ")[0].replace(",", ""))


def reach(page, step):
    """Wait until the page shows a step, or a later one: it may draw several at once."""
    shown = r"/step ([\d,]+)/.exec(document.getElementById('status-text').textContent)?.[1].replaceAll(',', '')"
    page.wait_for_function(f"step => Number({shown}) >= step", arg=step)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everything_is_drawn_and_fits_the_screen(opened, pictures, screen, scheme):
    page = opened("operate", color_scheme=scheme, **screen)
    page.locator("#history .scatterlayer path.js-line").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"]
    pixels = page.evaluate(
        "new Set(new Uint32Array(document.getElementById('heat').getContext('2d')"
        ".getImageData(0, 0, 300, 200).data.buffer)).size"
    )
    assert pixels > 5
    assert "epsilon 1" in page.locator("#guarantee").inner_text()
    page.screenshot(path=pictures / f"{scheme}-{screen['viewport']['width']}.png", full_page=True)


def test_the_chart_moves_while_events_are_posted(opened, city):
    page = opened()
    page.get_by_role("combobox", name="Find a bin").fill("bridge")
    page.keyboard.press("Enter")
    line = "document.querySelectorAll('#chart .scatterlayer path.js-line')"
    before, step = page.evaluate(f"[...{line}].map((each) => each.getAttribute('d')).join()"), released_step(page)
    for people in (300, 600, 900):
        let_a_minute_pass(city, people)
    page.wait_for_function(f"old => [...{line}].map((each) => each.getAttribute('d')).join() !== old", arg=before)
    reach(page, step + 2)
    assert released_step(page) >= step + 2


def test_search_finds_a_bin_among_many(opened, pictures):
    page = opened()
    search = page.get_by_role("combobox", name="Find a bin")
    search.fill("road 12")
    options = page.locator("#matches [role=option]")
    wait_for_count(options, 40)
    assert "more; type on" in page.locator("#matches").inner_text()
    search.fill("BRIDGE")
    wait_for_count(options, 1)
    page.screenshot(path=pictures / "search.png")
    options.first.click()
    assert "Harbour Bridge" in page.locator("#chosen").inner_text()
    search.fill("no such road")
    wait_for_count(options, 0)
    assert "no bin has this" in page.locator("#matches").inner_text()


def test_the_gauge_agrees_with_the_ledger(opened, city):
    page = opened()
    for people in (500, 20, 800):
        let_a_minute_pass(city, people)
    ledger = city.client("read").get("/v1/streams/city/ledger").json()
    shown = f"{ledger['spent']:.3f}".rstrip("0").rstrip(".")
    valued = "spent => Number(document.querySelector('[role=meter]').getAttribute('aria-valuenow')) === spent"
    page.wait_for_function(valued, arg=ledger["spent"])
    assert page.locator("#gauge-value").inner_text() == shown
    assert float(page.get_by_role("meter").get_attribute("aria-valuemax")) == ledger["epsilon"]
    length = float(page.locator("#gauge-fill").get_attribute("stroke-dasharray").split()[0])
    assert length == pytest.approx(100 * ledger["spent"] / ledger["epsilon"])


def test_the_latest_answers_are_shown_with_their_noise(opened, city, pictures):
    page = opened()
    latest = {"query": "five minutes", "latest": 1}
    rows = page.locator("#answers-body tr")
    wait_for_count(rows, 3)
    for people in (400, 30):
        let_a_minute_pass(city, people)
        (answer,) = city.client("read").get("/v1/streams/city/answers", params=latest).json()["answers"]
        noise = f"{round(2 * answer['variance'] ** 0.5):,}"
        shown = f"{answer['values'][0]:,} ± {noise}"
        until = f"1 Jan 2026, {answer['until'][11:16]}"
        row = "document.getElementById('answers-body').rows[0].textContent"
        page.wait_for_function(f"parts => parts.every((part) => {row}.includes(part))", arg=[shown, until])
    assert NASTY in rows.nth(1).inner_text()
    assert "not due yet" in rows.nth(2).inner_text()
    assert len(page.locator("#answers-body polyline").first.get_attribute("points").split()) > 5
    page.locator("#answers").screenshot(path=pictures / "answers.png")


def test_operators_figures_are_for_operators(opened, city, pictures):
    accepted = city.client("operate").get("/v1/streams/city/operations").json()["accepted"]
    operator = opened("operate")
    operator.locator("#operations dd").first.wait_for()
    assert f"{accepted:,}" in operator.locator("#operators").inner_text()
    reader = opened("read")
    reader.wait_for_timeout(4000)
    assert not reader.locator("#operators").is_visible()
    assert f"{accepted:,}" not in reader.content()
    assert "late" not in reader.locator("#operations").inner_text()


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_without_a_token_the_page_asks_for_one(opened, city, pictures, screen):
    page = opened(None, **screen)
    dialog = page.get_by_role("dialog", name="A token, please")
    dialog.wait_for()
    page.screenshot(path=pictures / "sign-in.png")
    assert page.evaluate("document.activeElement.id") == "token"
    page.keyboard.press("Escape")
    assert dialog.is_visible()
    page.get_by_role("textbox", name="Token").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("This token is not known").wait_for()
    page.get_by_role("textbox", name="Token").fill(city.tokens["ingest"])
    page.keyboard.press("Enter")
    page.get_by_text("This token is not known").wait_for()
    page.get_by_role("textbox", name="Token").fill(city.tokens["read"])
    page.keyboard.press("Enter")
    page.locator("#chart .scatterlayer path.js-line").first.wait_for()
    assert not dialog.is_visible()


def test_a_token_in_the_address_does_not_stay_there(opened, city):
    page = opened("read")
    assert page.url == city.address + "/"
    assert page.evaluate("localStorage.getItem('eventide-token')") is None


def test_the_keyboard_is_enough(opened, pictures):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the chart"
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("road 00")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#search").get_attribute("aria-activedescendant") == "match-2"
    chosen = page.locator("#match-2 span").first.inner_text()
    page.keyboard.press("Enter")
    chips = page.locator("#chosen")
    assert chosen in chips.inner_text()
    page.get_by_role("button", name=f"Take {chosen} out of the chart").focus()
    page.keyboard.press("Enter")
    assert chosen not in chips.inner_text()
    page.locator("#heat").focus()
    for key in ("ArrowLeft", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    said = page.locator("#heat-cell").inner_text()
    assert said.startswith(("road", "Harbour", "<"))
    page.screenshot(path=pictures / "keyboard.png", full_page=True)
    page.keyboard.press("Enter")
    assert said.split(",")[0] in chips.inner_text()
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('#numbers tr').length === 12")
    before = page.evaluate("document.documentElement.dataset.theme")
    page.locator("main").focus()
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") != before


def test_every_control_has_a_name_for_those_who_cannot_see_it(opened):
    page = opened("operate")
    unnamed = page.evaluate(
        """[...document.querySelectorAll('button, input, select, canvas, [role=img], [role=meter], section, dialog')]
        .filter((each) => !each.closest('.js-plotly-plot') || each.classList.contains('js-plotly-plot'))
        .filter((each) => !(each.ariaLabel || each.getAttribute('aria-labelledby') || each.textContent.trim()
                            || (each.labels && each.labels.length)))
        .map((each) => each.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    missing = page.evaluate(
        """[...document.querySelectorAll('[aria-labelledby], [aria-describedby], [aria-controls]')].flatMap((each) =>
        ['aria-labelledby', 'aria-describedby', 'aria-controls']
        .flatMap((name) => (each.getAttribute(name) || '').split(' '))
        .filter((id) => id && !document.getElementById(id)))"""
    )
    assert missing == []


def test_names_of_bins_are_text_and_never_markup(opened):
    page = opened()
    search = page.get_by_role("combobox", name="Find a bin")
    search.fill("onerror")
    assert page.locator("#matches [role=option] span").first.inner_text() == NASTY
    page.keyboard.press("Enter")
    assert NASTY in page.locator("#chosen").inner_text()
    page.locator("#chart").hover()
    page.wait_for_timeout(300)
    page.locator("summary").click()
    assert page.locator("main img, main b").count() == 0
    assert page.title() == "city · eventide"


def test_a_connection_that_was_lost_is_taken_up_again(opened, city):
    page = opened()
    step = released_step(page)
    page.context.set_offline(True)
    let_a_minute_pass(city, 10)
    let_a_minute_pass(city, 10)
    assert released_step(page) == step
    page.context.set_offline(False)
    reach(page, step + 2)
    assert released_step(page) >= step + 2


def test_true_counts_are_drawn_of_synthetic_streams_only_and_labelled(browser, opened, tmp_path_factory):
    real = opened()
    assert not real.get_by_label("synthetic truth").is_visible()
    assert not real.get_by_text("A synthetic city.").is_visible()
    folder = tmp_path_factory.mktemp("synthetic")
    truth = [(step, [step, 7, 9]) for step in range(4)]
    with running(configuration(folder), truth=lambda first: truth[first:]) as up:
        up.pass_steps(4)
        context = browser.new_context(**DESKTOP)
        page = context.new_page()
        page.goto(f"{up.address}/#token={up.tokens['read']}")
        page.get_by_text("A synthetic city.").wait_for()
        dotted = page.locator("#chart .scatterlayer path.js-line[style*=dasharray]")
        dotted.first.wait_for(state="attached")
        page.get_by_label("synthetic truth").uncheck()
        dotted.first.wait_for(state="detached")
        context.close()


def test_one_of_several_streams_can_be_chosen(browser, tmp_path):
    streams = [stream(tmp_path, "first"), stream(tmp_path, "second", bins=("x", "y"))]
    with running(configuration(tmp_path, streams)) as up:
        up.post([event("y", "anna")], "second")
        up.pass_steps(2, "first")
        up.pass_steps(0, "second")
        context = browser.new_context(**DESKTOP)
        page = context.new_page()
        page.goto(f"{up.address}/#token={up.tokens['read']}")
        page.locator("#chosen", has_text="north").wait_for()
        page.get_by_label("Stream").select_option("second")
        page.locator("#chosen", has_text="x").wait_for()
        assert "north" not in page.locator("#chosen").inner_text()
        page.locator("#health", has_text="second").wait_for()
        assert page.title() == "second · eventide"
        context.close()


def test_the_band_is_called_what_it_is(browser, tmp_path):
    own, noise = f"its interval of {100 * PosteriorMedian().coverage:g} %", "where 95 % of the noise falls"
    streams = [stream(tmp_path, "plain"), stream(tmp_path, "estimated", mechanism="tide")]
    with running(configuration(tmp_path, streams)) as up:
        up.pass_steps(2, "plain")
        up.pass_steps(2, "estimated")
        context = browser.new_context(**DESKTOP)
        page = context.new_page()
        note = page.locator("#series-note")
        page.goto(f"{up.address}/?stream=plain#token={up.tokens['read']}")
        page.locator("#series-note", has_text=noise).wait_for()
        assert own not in note.inner_text()
        page.get_by_label("Stream").select_option("estimated")
        page.locator("#series-note", has_text=own).wait_for()
        assert "noise" not in note.inner_text()
        mixed = page.evaluate(
            """async () => {
                const { History } = await import("/assets/history.js");
                const { Levels } = await import("/assets/levels.js");
                const history = new History({}, new Levels(["north"], []));
                history.add({ step: 0, values: [3], scale: [1] });
                history.add({ step: 1, values: [3], scale: [1], low: [2], high: [4] });
                return history.band();
            }"""
        )
        assert own in mixed
        assert noise in mixed
        context.close()


def test_nothing_of_another_stream_stays_when_one_is_chosen(browser, tmp_path):
    wide = stream(tmp_path, "wide", bins=tuple(f"road {number:03}" for number in range(300)))
    narrow, later = stream(tmp_path, "narrow"), stream(tmp_path, "later", start="2030-01-01T00:00:00Z")
    with running(configuration(tmp_path, [wide, narrow, later])) as up:
        up.pass_steps(3, "wide")
        up.pass_steps(0, "narrow")
        context = browser.new_context(**DESKTOP)
        page = context.new_page()
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{up.address}/?stream=wide#token={up.tokens['read']}")
        page.locator("#heat-note", has_text="300 bins").wait_for()
        page.locator("#heat").focus()
        for key in ("ArrowUp", *["PageDown"] * 20):
            page.keyboard.press(key)
        assert page.locator("#heat-cell").inner_text().startswith("road 200")
        page.get_by_label("Stream").select_option("narrow")
        page.locator("#heat-note", has_text="3 bins").wait_for()
        up.pass_steps(1, "narrow")
        reach(page, 3)
        assert page.locator("#heat-cell").inner_text() == ""
        page.get_by_label("Stream").select_option("later")
        page.wait_for_function("() => document.getElementById('gauge-value').textContent === '0'")
        assert page.locator("#heat-note").inner_text() == ""
        context.close()
    assert complaints == []


def test_under_a_cap_the_budget_is_that_of_one_person(browser, tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, window=6, cap="1/6min"), stream(tmp_path, "plain")])) as up:
        up.post([event(), event("south")])
        for name in ("city", "plain"):
            up.pass_steps(3 * (name == "city"), name)
        context = browser.new_context(**DESKTOP)
        page = context.new_page()
        page.goto(f"{up.address}/?stream=city#token={up.tokens['operate']}")
        page.locator("#budget-title", has_text="Privacy budget of one person").wait_for()
        assert "In any 6 steps one person has lost at most 1." in page.locator("#budget-note").inner_text()
        assert page.get_by_role("meter").get_attribute("aria-valuetext") == "1 of 1 epsilon lost"
        page.locator("#operations", has_text="left out by limits per person").wait_for()
        page.locator("#health", has_text="1/6min").wait_for()
        page.get_by_label("Stream").select_option("plain")
        page.locator("#budget-title", has_text="Privacy budget of the current window").wait_for()
        page.locator("#health", has_text="plain").wait_for()
        assert "1/6min" not in page.locator("#health").inner_text()
        context.close()


def test_the_stream_chosen_last_is_shown_however_slow_the_others_are(browser, tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, "first"), stream(tmp_path, "slow")])) as up:
        up.pass_steps(2, "first")
        context = browser.new_context(**DESKTOP)
        page = context.new_page()
        page.goto(f"{up.address}/?stream=first#token={up.tokens['read']}")
        page.locator("#health", has_text="first").wait_for()
        held = []
        page.route("**/v1/streams/slow/bins", lambda route: held.append(route))
        with page.expect_request("**/v1/streams/slow/bins"):
            page.get_by_label("Stream").select_option("slow")
        with page.expect_response("**/v1/streams/first/ledger"):
            page.get_by_label("Stream").select_option("first")
        with page.expect_response("**/v1/streams/slow/bins"):
            held[0].continue_()
        up.pass_steps(1, "first")
        reach(page, 2)
        assert page.title() == "first · eventide"
        context.close()


def test_what_is_outside_would_be_refused(browser, city):
    context = browser.new_context()
    page = context.new_page()
    page.goto(city.address)
    for outside in (
        "document.body.append(Object.assign(new Image(), {src: 'https://example.org/pixel.png'}))",
        "fetch('https://example.org/').catch(() => null)",
    ):
        with page.expect_console_message(lambda message: "Content Security Policy" in message.text) as refused:
            page.evaluate(outside)
        assert "https://example.org/" in refused.value.text
    context.close()
