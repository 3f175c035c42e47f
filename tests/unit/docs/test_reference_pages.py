"""The reference is complete: every public name, verb, key, metric and error has its place in it."""

from __future__ import annotations

import inspect
import re
import tomllib

import click
import pytest
from documents import ROOT, generator, site_pages

import eventide as ev
from eventide.bench import builtin_studies
from eventide.bench.study.metrics import METRICS, PLAN_METRICS
from eventide.cli import EXIT_CODES, main
from eventide.live.stores.home import HOME
from eventide.live.stores.tables import table_statements
from eventide.service.config.config_file import read_config
from eventide.service.config.settings import TABLES
from eventide.service.http.prometheus import exposition

API = generator("generate_api")
METRICS_PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")


def headings(text):
    return re.findall(r"^## (\w+)$", text, re.MULTILINE)


@pytest.mark.parametrize("module", API.MODULES)
def test_every_public_name_is_documented(module):
    place = f"reference/api/{module.removeprefix('eventide.')}.md"
    listed = getattr(API.module_of(module), "__all__", [])
    modules = {name.rpartition(".")[2] for name in API.MODULES}
    assert set(listed) - modules <= set(headings(site_pages()[place]))


def test_every_module_of_the_package_has_a_page():
    modules = [name for name in ev.__all__ if inspect.ismodule(getattr(ev, name))]
    assert {f"eventide.{name}" for name in modules} <= set(API.MODULES)


def test_a_name_without_a_docstring_stops_the_build():
    with pytest.raises(ValueError, match="thing has no docstring"):
        API.described(lambda: None, "thing")


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (ev.windows.plan, "planner: str = 'best'"),
        (ev.Uniform, "eventide.Uniform("),
        (ev.run, "(mechanism: Mechanism, matrix: Any) -> Run"),
        (ev.windows.Answer, "begin: int"),
    ],
)
def test_signatures_are_as_they_are_written(function, shown):
    page = "\n".join(site_pages()[place] for place in ("reference/api/eventide.md", "reference/api/windows.md"))
    assert shown in page
    assert not re.search(r"ForwardRef|0x[0-9a-f]{6}|: '", page)


def test_parameters_are_a_list_with_names_as_code():
    pages = [site_pages()[f"reference/api/{name.removeprefix('eventide.')}.md"] for name in API.MODULES]
    assert "**Parameters.**\n\n* `k`: There is a look every `k` steps" in pages[0]
    assert "* `epsilon`, `window`, `bins`, `**common`: As in `Mechanism`.\n" in pages[0]
    assert "**Attributes.**\n\n* `complete`: " in pages[0]
    assert not [page for page in pages if "-----" in page.replace("|---", "")]


def verbs(command=main, path="eventide"):
    yield path, command
    context = click.Context(command)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from verbs(command.get_command(context, name), f"{path} {name}")


@pytest.mark.parametrize(("path", "command"), [pytest.param(*verb, id=verb[0]) for verb in verbs()])
def test_every_verb_is_shown_with_its_options_and_an_example(path, command):
    page = site_pages()["reference/command-line.md"]
    (part,) = re.findall(rf"^##+ {path}\n+```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    shown = [each for each in command.params if not getattr(each, "hidden", False)]  # older names are not
    asked = [option for each in shown for option in each.opts if option.startswith("--")]
    assert [option for option in asked if option not in part] == []
    assert re.search(r"Examples?:", part)


def test_every_key_of_a_configuration_is_explained(tmp_path):
    page = site_pages()["reference/configuration.md"]
    for table, fields in TABLES.items():
        (part,) = re.findall(rf"^## \[+{table}\]+\n(.*?)(?=^## )", page, re.DOTALL | re.MULTILINE)
        rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]* \| ([^|]+) \|$", part, re.MULTILINE)
        assert [key for key, _ in rows] == list(fields)
        assert [key for key, meaning in rows if not meaning.strip()] == []
    (file,) = re.findall(r"^```toml.*?\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "eventide.toml").write_text(file)
    assert tomllib.loads(file)
    assert read_config(tmp_path / "eventide.toml").streams


def test_every_error_and_exit_code_is_explained():
    page = site_pages()["reference/errors.md"]
    for kind, code in EXIT_CODES.items():
        assert re.search(rf"^\| {code} \| .*`{kind.__name__}`", page, re.MULTILINE)
    told = set(re.findall(r"Exit codes: (.*?)\.", main.help.replace("\n", " "))[0].split(", "))
    assert {int(code.split()[0]) for code in told} == set(
        map(int, re.findall(r"^\| (\d{1,3}) \| [^`]", page, re.MULTILINE))
    )
    refused = {code for _, code, _ in generator("generate_reference").problems()}
    assert {"no-token", "too-large", "unknown-stream"} <= refused <= set(re.findall(r"`([a-z-]+)`", page))


def test_every_metric_is_explained():
    of_study, of_service = METRICS_PAGE.split("## Of the service")
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", of_study, re.MULTILINE))))
    assert named == {*METRICS, *PLAN_METRICS}
    given = re.findall(r"# HELP (\w+) .*\n# TYPE \w+ (\w+)", exposition([], with_raw=True).decode())
    assert re.findall(r"^\| `(\w+)` \| (\w+) \|", of_service, re.MULTILINE) == given


def test_every_built_in_study_is_named_by_the_help_and_by_the_page_about_studies():
    (told,) = re.findall(r"Built in: (.*?)\.", site_pages()["reference/command-line.md"], re.DOTALL)
    assert set(re.sub(r"\(.*?\)| and|,", " ", told, flags=re.DOTALL).split()) == set(builtin_studies())
    page = (ROOT / "docs" / "how-to" / "studies.md").read_text(encoding="utf-8")
    table = page.split("## What comes with eventide")[1].split("\n\n")[1]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == set(builtin_studies())


def test_every_table_of_a_store_is_explained():
    page = (ROOT / "docs" / "reference" / "file-formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page.split("## Stores")[1].split("## ")[0], re.MULTILINE)
    statements = table_statements(number="INTEGER", counter="INTEGER", binary="BLOB", literal=bytes.hex)
    tables = re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", "\n".join([*statements, HOME]))
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(tables)
