"""What people stumble over first: each mistake is told in a sentence that says what to do."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from eventide.cli import main
from eventide.live.accounts.open_account import create_account

EVENTS = "--step 1h --time at --user who --bin page --bins pages.txt --start 2024-03-01 --until 2024-03-02"
PRIVACY = "--epsilon 1 --window 24 --mechanism uniform"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command line in a folder with a file of events."""
    monkeypatch.chdir(tmp_path)
    rows = [f"2024-03-01T{hour:02}:10:00Z,u{hour % 5},{('home', 'shop')[hour % 2]}" for hour in range(24)]
    Path("events.csv").write_text("\n".join(["at,who,page", *rows, ""]))
    Path("pages.txt").write_text("home\nshop\n")
    return lambda line: CliRunner().invoke(main, shlex.split(line))


@pytest.fixture
def store(run):
    done = run(f"publish events.csv {EVENTS} {PRIVACY} --store city.db --out city.csv")
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (f"publish events.csv {PRIVACY}", 2, "if its rows are events, give --step and name their columns with --time"),
        (f"publish events.csv --bins pages.txt {PRIVACY}", 2, "if its rows are events, give --step"),
        (f"publish events.csv --user who --bins pages.txt {PRIVACY}", 2, "the length of a step, such as --step 1h"),
        ("ledger events.csv", 5, "events.csv is no store of eventide; give the file that was made with --store"),
        (f"publish events.csv {EVENTS} --epsilon 1 --window 24 --cap 2/7d --mechanism ba", 2, "ba cannot be published"),
        (f"publish events.csv {EVENTS} {PRIVACY} --late 0s --dry-run", 0, "Checked 2 bins"),
        (f"publish events.csv {EVENTS} --window 24 --mechanism uniform --epsilon 100 --dry-run", 0, "100 hides little"),
        ("account create a.account --population all --epsilon 100 --window 7d", 0, "100 hides little of anybody"),
        (
            f"publish events.csv {EVENTS} {PRIVACY} --epsilon 2",
            2,
            "--epsilon is given more than once, and takes one value",
        ),
        (f"publish events.csv {EVENTS} {PRIVACY} --mechanism ba", 2, "--mechanism is given more than once"),
        ("export a.db --out a.csv --out=b.csv", 2, "--out is given more than once"),
        ("account create a.account --window 7d --population all --epsilon 1 --window 1d", 2, "--window is given more"),
        (
            f"publish events.csv {EVENTS} {PRIVACY} --statistic people --statistic events --dry-run --dry-run",
            0,
            "Checked",
        ),
        ("guarantee city.db --out page.pdf", 2, "must end in .html: the page is made for a browser. For a PDF"),
        ("demo --out city.png", 2, "city.png must end in .html"),
        ("account show people.account --out people.pdf", 2, "people.pdf must end in .html"),
        ("audit ba --epsilon 1 --window 3 --out bounds.svg", 2, "bounds.svg must end in .html"),
        ("choose --level 9 --epsilon 1 --window 3 --out choice.pdf", 2, "choice.pdf must end in .html"),
        ("audit ba --epsilon 1 --window 3 --out nowhere/bounds.html", 2, "cannot write nowhere/bounds.html"),
        ("bench quick --out errors.csv", 2, "errors.csv must end in .parquet; eventide report --table writes"),
        ("bench mine.toml --out r.parquet", 2, "mine.toml is not a file; check the path"),
    ],
)
def test_what_is_said(run, line, code, says):
    done = run(line)
    assert (done.exit_code, says in done.output) == (code, True), done.output


def test_a_bin_that_was_mistyped(run, store):
    assert "there is no bin 'hme'; did you mean 'home'?" in run("bins city.db --close hme").output
    Path("groups.toml").write_text('all = ["home", "shp"]')
    assert (
        "there is no bin 'shp'; did you mean 'shop'?" in run("export city.db --out x.csv --totals groups.toml").output
    )
    Path("levels.csv").write_text("bin,part\nhome,a\nshopp,b\n")
    told = run(f"publish events.csv {EVENTS} {PRIVACY} --levels levels.csv --dry-run").output
    assert "there is no bin 'shopp'; did you mean 'shop'?" in told


def test_a_list_of_very_many_names_is_cut(run):
    from eventide.errors import unknown

    told = unknown("bin", "zzz", map(str, range(5_000)))
    assert told.endswith("18, 19 and 4,980 others")


def test_an_output_of_another_store_gets_both_reasons(run, store):
    done = run(f"publish events.csv {EVENTS} {PRIVACY} --store other.db --out city.csv")
    assert done.exit_code == 5
    assert "Either it belongs to another store" in done.output
    assert "Or the store was restored from a backup" in done.output


@pytest.mark.parametrize(
    "line",
    [
        "demo --no-browser --out mine.html",
        "audit uniform --epsilon 1 --window 2 --bins 2 --out mine.html",
        "choose counts.csv --epsilon 1 --window 7 --out mine.html",
        "guarantee city.db --out mine.html",
        "account show a.account --out mine.html",
        "report results.parquet --out mine.html",
        "plan queries.toml --epsilon 1 --out mine.png",
    ],
)
def test_nothing_is_written_over_a_file_of_somebody_else(run, line):
    mine = Path(line.rpartition(" ")[2])
    mine.write_text("<!doctype html>\nhalf a year of work")
    done = run(line)
    assert (done.exit_code, "nothing in it says that eventide wrote it" in done.output) == (2, True), done.output
    assert mine.read_text().endswith("half a year of work")


def test_a_page_of_ours_is_made_anew(run):
    create_account("a.account", "everybody", 1, "24h")
    assert [run("account show a.account --out page.html").exit_code for _ in range(2)] == [0, 0]
    assert run("account show a.account --out page.html.new").exit_code == 0  # to be renamed when it is whole


def test_the_promise_speaks_of_hours_and_days(run, store):
    assert "inside any 24 consecutive steps (1 day) are hidden" in store.stderr
    Path("queries.toml").write_text("[[query]]\nwindow = 12\nstep = 3\n")
    planned = run("plan queries.toml --epsilon 1 --window 500 --step 10min").stderr
    assert "inside any 500 consecutive steps (3 days 11 hours 20 minutes) are hidden" in planned


def test_a_dry_run_says_what_it_did_not_check(run, store):
    said = run(f"publish events.csv {EVENTS} {PRIVACY} --store city.db --dry-run").stderr
    assert "Not checked: whether the store is a copy" in said


def test_all_csv_files_are_quoted_alike(run, store):
    assert run("export city.db --out exported.csv").exit_code == 0
    assert Path("exported.csv").read_bytes() == Path("city.csv").read_bytes()


def test_names_that_need_quotes_have_them(run):
    Path("pages.txt").write_text('home\n"shop, old"\n')
    Path("events.csv").write_text("at,who,page\n2024-03-01T01:00:00Z,u,home\n")
    done = run(f"publish events.csv {EVENTS} {PRIVACY} --out long.csv --layout long")
    assert done.exit_code == 0, done.output
    assert '"""shop, old"""' in Path("long.csv").read_text().splitlines()[2]


def test_a_publication_that_was_ended_says_that_it_joins_again(run):
    create_account("people.account", "everybody", 1, "24h")
    line = f"publish events.csv {EVENTS} --epsilon 0.5 --window 25 --mechanism uniform --account people.account "
    line += "--store city.db --out city.csv"
    first = run(line)
    assert (first.exit_code, "joined it again" in first.output) == (0, False), first.output
    assert "joins the account again" in run("account end people.account city.db").output
    assert "has joined it again; to keep it out, stop this publisher" in run(line).output


def test_checking_a_configuration_fails_where_a_start_would(run):
    started = run("init")
    assert (started.exit_code, "  eventide config token ingest eventide.toml\n" in started.output) == (0, True)
    checked = run("config check eventide.toml")
    assert (checked.exit_code, "Not checked: whether a store is a copy" in checked.output) == (0, True)
    text = Path("eventide.toml").read_text()
    Path("eventide.toml").write_text(text.replace("epsilon = 1.0", "epsilon = 100.0"))
    assert "stream city: Epsilon 100 hides little of anybody" in run("config check eventide.toml").output
    Path("eventide.toml").write_text(
        text.replace("epsilon = 1.0                   # Required. The budget of all", 'account = "no.account"  #', 1)
    )
    checked = run("config check eventide.toml")
    assert (checked.exit_code, "population residents: there is no account at" in checked.output) == (2, True)
