"""The command answers fast, shows an example of each verb, and ends every error with its code and one sentence."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import click
import pytest

from eventide import cli
from eventide.errors import BudgetExceeded, EventideError, InputError, StateError, StoreError

HEAVY = {"numpy", "pyarrow", "numba", "rich", "plotly", "narwhals"}


def run(capsys, *words):
    """Run the command; give its exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*words])
    return ended.value.code, *capsys.readouterr()


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["publish", "--help"], ["nonsense"]])
def test_help_loads_nothing_heavy(words):
    code = f"import sys, eventide.cli\ntry: eventide.cli.main({words})\nfinally: print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    loaded = {name.split(".")[0] for name in ended.stderr.split()}
    assert "click" in loaded
    assert not HEAVY & loaded


def test_help_shows_an_example_of_each_verb(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "eventide demo" in out
    assert "eventide publish counts.csv --epsilon 1 --window 144" in out


@pytest.mark.parametrize("name", cli.VERBS)
def test_every_verb_is_there_and_says_what_it_does(capsys, name):
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert out.startswith(f"Usage: pytest {name}") or f" {name} [OPTIONS]" in out
    assert "Example: eventide " + name in out


def test_an_unknown_verb_is_bad_usage(capsys):
    code, _, err = run(capsys, "nonsense")
    assert code == 2
    assert "there is no verb 'nonsense'; choose one of demo, publish, serve" in err


def test_a_mistyped_verb_gets_the_one_that_was_meant(capsys):
    code, _, err = run(capsys, "publsh")
    assert code == 2
    assert "there is no verb 'publsh'; did you mean 'publish'?" in err


@pytest.fixture
def failing(monkeypatch):
    """A verb that fails with the given error."""

    def install(error):
        @click.command("fail")
        def command():
            raise error

        module = ModuleType("eventide.cli.fail")
        module.command = command
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(cli.VERBS, "fail", cli.Verb("Fail.", "eventide fail"))

    return install


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("look at row 3"), 2),
        (BudgetExceeded(1.0, 0.5, 3), 3),
        (StateError("the step is over"), 5),
        (StoreError("the store is busy"), 5),
        (EventideError("another"), 1),
        (click.UsageError("bad option"), 2),
    ],
)
def test_an_error_is_its_sentence_and_its_code(capsys, failing, error, code):
    failing(error)
    ended, out, err = run(capsys, "fail")
    assert ended == code
    assert out == ""
    assert err.splitlines()[-1] == f"Error: {error}"
    assert "Traceback" not in err


def test_a_subclass_of_an_error_keeps_its_code(capsys, failing):
    class Stricter(InputError):
        pass

    failing(Stricter("look again"))
    assert run(capsys, "fail")[0] == 2


def test_an_interruption_ends_with_130(capsys, failing):
    failing(KeyboardInterrupt())
    assert run(capsys, "fail") == (130, "", "Error: interrupted\n")


def test_an_unexpected_error_shows_its_kind_and_no_data(capsys, failing):
    failing(ValueError("bin north holds 7919"))
    code, out, err = run(capsys, "fail")
    assert code == 1
    assert out == ""
    assert err.startswith("Error: unexpected ValueError")
    assert err.count("\n") == 1
    assert "7919" not in err


def test_debugging_shows_everything(monkeypatch, failing):
    monkeypatch.setenv("EVENTIDE_DEBUG", "1")
    failing(ValueError("bin north holds 7919"))
    with pytest.raises(ValueError, match="7919"):
        cli.main(["fail"])
