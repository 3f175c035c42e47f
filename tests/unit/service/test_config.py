"""The configuration of a service: what is right is read, and every mistake is named with its line and a way out."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from eventide.cli import main
from eventide.errors import InputError
from eventide.events.clock import ManualClock
from eventide.service.config.config_file import examine, read_config
from eventide.service.live_stream import LiveStream

STREAM = """
[[streams]]
name = "{name}"
population = "people"
epsilon = {epsilon}
window = "{window}"
step = "10min"
start = 2026-01-01T00:00:00Z
bins = ["north", "south"]
user = "user"
store = "{name}.store"
"""
PEOPLE = '[[populations]]\nname = "people"\nepsilon = 1.0\n'


def written(folder, text):
    file = folder / "eventide.toml"
    file.write_text(text)
    return file


def a_stream(name="one", epsilon=0.5, window="24h"):
    return STREAM.format(name=name, epsilon=epsilon, window=window)


def test_what_init_writes_is_right_and_says_what_it_says(tmp_path):
    file = tmp_path / "eventide.toml"
    assert CliRunner().invoke(main, ["init", str(file)]).exit_code == 0
    assert CliRunner().invoke(main, ["config", "check", str(file)]).exit_code == 0
    config = read_config(file)
    (city,) = config.streams
    assert (config.server.host, config.access.open_reading) == ("127.0.0.1", False)
    assert (city.window, city.epsilon, city.bins) == (144, 1, ("north", "south", "harbour"))
    assert city.store == tmp_path / "city.store"


def test_init_never_writes_over_a_file(tmp_path):
    file = written(tmp_path, "mine")
    assert CliRunner().invoke(main, ["init", str(file)]).exit_code == 2
    assert file.read_text() == "mine"


def test_every_mistake_is_named_in_the_order_of_lines(tmp_path):
    file = written(
        tmp_path,
        "\n".join(
            [
                "[server]",
                'hots = "0.0.0.0"',
                'port = "x"',
                'certificate = "a.pem"',
                "[[population]]",
                'name = "p"',
                "[[streams]]",
                'name = "City Centre"',
                "epsilon = -1",
                'window = "a day"',
                'step = "10min"',
                'start = "yesterday"',
                'bins = ["a", "a"]',
                'mechanism = "bah"',
                "max_per_step = 3",
                'filter = "none"',
            ]
        ),
    )
    _, said = examine(file)
    expected = [
        (2, "did you mean 'host'"),
        (3, "whole number"),
        (4, "TLS needs both"),
        (5, "did you mean 'populations'"),
        (7, "store is missing; write it, such as store"),
        (8, "is no name"),
        (9, "epsilon"),
        (10, "is no duration"),
        (12, "is no time"),
        (13, "appears twice"),
        (14, "did you mean 'ba'"),
        (15, "as user"),
    ]
    assert len(said) == len(expected)
    for sentence, (line, part) in zip(said, expected, strict=True):
        assert sentence.startswith(f"eventide.toml, line {line}: "), sentence
        assert part in sentence
    result = CliRunner().invoke(main, ["config", "check", str(file)])
    assert (result.exit_code, result.stdout.splitlines()) == (2, said)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "there is no stream"),
        ("[streams]\n", "write each as [[streams]]"),
        ("streams = 3\n", "write each as [[streams]]"),
        ("[server\n", "is not TOML"),
        ("[[server]]\n", "server is one table"),
        (PEOPLE + a_stream(epsilon=0.6) + a_stream("two", 0.6), "ask for epsilon 1.2 together, of 1; give each 0.5"),
        (PEOPLE + a_stream() + a_stream("two", window="12h"), "window differs from that of 'one'"),
        (PEOPLE + a_stream(window="5min"), "window: a window of 5min is shorter than a step of 10min"),
        (PEOPLE + a_stream() + a_stream("one"), "another stream has the name 'one'"),
        (PEOPLE + a_stream() + a_stream("two").replace('user = "user"\n', ""), "name it, as user"),
        (a_stream(), "there is no population 'people'; write one"),
        (PEOPLE.replace("people", "peopel") + a_stream(), "did you mean 'peopel'"),
        (PEOPLE + a_stream() + "parameters = { k = 0 }\n", "takes no 'k'"),
        (PEOPLE + a_stream() + "parameters = { seed = 7 }\n", "parameters: 'seed' is decided elsewhere"),
        (PEOPLE + a_stream() + "until = 2027-01-01\n", "there is no key of streams 'until'"),
        (PEOPLE + a_stream() + "queries_epsilon = 0.1\n", "name their file with queries"),
        (PEOPLE + a_stream() + 'other = "west"\nbin = 3\n', "bin: 3 is no text"),
        (PEOPLE + a_stream() + 'zone = "Europe/Nowhere"\n', "zone"),
        (PEOPLE + a_stream() + a_stream("two").replace("two.store", "./one.store"), "has the store './one.store'"),
        ('[server]\ncertificate = "a.pem"\nkey = "a.key"\n' + PEOPLE + a_stream(), "certificate: there is no file"),
        (PEOPLE + re.sub("bins = .*", "bins = 99_999_999_999", a_stream()), "more than 10,000,000"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, part):
    _, said = examine(written(tmp_path, text))
    assert any(part in sentence for sentence in said), said


def test_a_mistake_in_one_place_hides_none_in_another(tmp_path):
    """What a mechanism takes is known only when it is built, which a mistake elsewhere does not prevent."""
    two = a_stream("two") + "parameters = { k = 0 }\n"
    _, said = examine(written(tmp_path, "[server]\nport = 0\n" + PEOPLE + a_stream(epsilon=-1) + two))
    expected = ("port", "epsilon is -1", "takes no 'k'")
    assert all(part in sentence for part, sentence in zip(expected, said, strict=True)), said


def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "none.toml")


def test_streams_of_one_population_share_its_epsilon(tmp_path):
    config = read_config(written(tmp_path, PEOPLE + a_stream(epsilon=0.7) + a_stream("two", 0.3)))
    assert config.populations == {"people": Fraction(1)}
    assert [stream.epsilon for stream in config.streams] == [Fraction(7, 10), Fraction(3, 10)]


def test_bins_come_from_a_list_a_number_or_a_file_beside_the_configuration(tmp_path):
    (tmp_path / "bins.txt").write_text("a\nb\nc\n")
    for written_bins, bins in (('"bins.txt"', ("a", "b", "c")), ("2", ("0", "1"))):
        text = PEOPLE + a_stream().replace('["north", "south"]', written_bins)
        assert read_config(written(tmp_path, text)).streams[0].bins == bins
    text = PEOPLE + a_stream() + 'other = "elsewhere"\n'
    assert read_config(written(tmp_path, text)).streams[0].bins == ("north", "south", "elsewhere")


def test_the_sensitivity_is_what_one_person_may_add(tmp_path):
    config = read_config(written(tmp_path, PEOPLE + a_stream() + "max_per_step = 3\n"))
    assert config.streams[0].build_mechanism().sensitivity == 3


def test_a_mechanism_of_ones_own_is_found_beside_the_command(tmp_path, monkeypatch):
    (tmp_path / "ours_of_serve.py").write_text(
        "from eventide.mechanisms.hybrid import Hybrid\nclass Mine(Hybrid): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    own = 'mechanism = "ours_of_serve:Mine"\nparameters = { k = 4 }\n'
    file = written(tmp_path, PEOPLE + a_stream() + own)
    assert CliRunner().invoke(main, ["config", "check", str(file)]).exit_code == 0
    assert read_config(file).streams[0].build_mechanism().k == 4


def test_a_token_is_made_and_only_its_digest_is_kept(tmp_path):
    file = written(tmp_path, PEOPLE + a_stream())
    result = CliRunner().invoke(main, ["config", "token", "read", str(file)])
    assert result.exit_code == 0
    token, kept = result.stdout.strip(), (tmp_path / "eventide.tokens").read_text()
    assert token.startswith("eventide-read-")
    assert token not in kept
    assert kept.startswith("read read ")
    assert (tmp_path / "eventide.tokens").stat().st_mode & 0o777 == 0o600


def test_the_configuration_in_the_documents_is_right(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")
    (queries,) = re.findall(r'```toml title="queries.toml"\n(.*?)```', page, re.DOTALL)
    (tmp_path / "queries.toml").write_text(queries)
    config = read_config(written(tmp_path, "".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL))))
    assert config.populations == dict.fromkeys(["patients", "clinic", "emergency", "harbour"], Fraction(1))
    assert [stream.window for stream in config.streams] == [168, 168, 168, 144, 144]
    assert [len(stream.queries) for stream in config.streams] == [0, 0, 0, 1, 0]
    assert config.streams[-1].out == (str(tmp_path / "harbour.jsonl"), "https://example.org/releases")


def test_the_file_of_client_settings_is_checked_with_the_configuration(tmp_path):
    file = written(tmp_path, '[server]\nclients = "clients.toml"\n' + PEOPLE + a_stream())
    assert examine(file)[1] == [
        f"eventide.toml, line 2: clients: {tmp_path}/clients.toml cannot be read as a file of client settings; check "
        "the path and its owner"
    ]
    clients = tmp_path / "clients.toml"
    clients.write_text('[postgres]\nhost = "elsewhere"\n')
    clients.chmod(0o600)
    assert "clients.toml, line 2: host is said by the address" in str(examine(file)[1])
    clients.write_text('[postgres]\npassword = "canary"\n')
    assert read_config(file).server.clients == str(clients)
    clients.chmod(0o644)
    assert f"chmod 600 {clients}" in str(examine(file)[1])


def checked(file, *options):
    result = CliRunner().invoke(main, ["config", "check", str(file), *options])
    return result.exit_code, result.stdout


def test_everything_that_is_in_the_way_of_a_start_is_told_at_once(tmp_path):
    file = written(tmp_path, PEOPLE + a_stream())
    writer = LiveStream(read_config(file).streams[0], ManualClock())
    own = a_stream("two").replace('population = "people"\n', "").replace("two.store", "missing/two.store")
    file.write_text('[access]\nlog = "logs/access.jsonl"\n' + PEOPLE + a_stream() + own)
    tokens = tmp_path / "eventide.tokens"
    tokens.touch(mode=0o644)
    names = sorted(path.name for path in tmp_path.iterdir())
    code, said = checked(file)
    assert code == 2
    assert "has no mistakes, but a start would be refused" in said
    assert f"stream one: the store {tmp_path}/one.store is in use by process {os.getpid()}" in said
    assert f"stream two: no store can be kept at {tmp_path}/missing/two.store: make its folder" in said
    assert f"tokens: {tokens} may be read or written by others (mode 644); run: chmod 600" in said
    assert "logs/access.jsonl cannot be written" in said
    tokens.chmod(0o600)
    assert checked(file)[0] == 5  # only stores are in the way
    assert "others may write" not in said
    tmp_path.chmod(0o777)
    assert f"others may write to the folder {tmp_path}, so they can replace a store" in checked(file)[1]
    tmp_path.chmod(0o700)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    (tmp_path / "missing").mkdir()
    writer.stop()
    assert checked(file)[0] == 0
    lock = tmp_path / "one.store.lock"
    lock.unlink()
    lock.mkdir()  # for one that somebody else made, which root could open
    code, said = checked(file)
    assert (code, f"stream one: {lock} cannot be written: " in said, "look at its owner" in said) == (5, True, True)


def test_the_error_to_expect_is_told_where_somebody_asks_for_it(tmp_path):
    file = written(tmp_path, PEOPLE + a_stream() + 'mechanism = "uniform"\n')
    code, said = checked(file, "--errors")
    assert (code, "stream one:\nWith this setting the expected error of a count is about" in said) == (0, True)
    assert "expected error" not in checked(file)[1]


def test_a_population_that_was_forgotten_is_told(tmp_path):
    """Two streams with people and without a population count as about different ones: their epsilons do not add up."""
    file = written(tmp_path, PEOPLE + (a_stream() + a_stream("two")).replace('population = "people"\n', ""))
    code, said = checked(file)
    assert code == 0
    assert "no stream names the population 'people'" in said
    assert "the streams one, two name no population, so each is taken to be about people of its own" in said
    assert "name no population" not in checked(written(tmp_path, PEOPLE + a_stream() + a_stream("two")))[1]


@pytest.mark.parametrize("line", ["step = 10s", "start = 2026-11-18 21:20"])
def test_what_is_no_toml_is_told_with_how_it_is_written(tmp_path, line):
    key = line.split()[0]
    text = "\n".join(line if each.startswith(f"{key} =") else each for each in (PEOPLE + a_stream()).splitlines())
    code, said = checked(written(tmp_path, text))
    assert (code, "durations stand in quotation marks" in said, "a time has seconds" in said) == (2, True, True)


def test_a_check_says_where_the_clock_and_the_steps_do_not_fit(tmp_path):
    """A store that came to the year 2126 with a wrong clock; and a start of which the year was mistyped."""
    file = written(tmp_path, PEOPLE + a_stream().replace("2026-01-01", "2126-01-01"))
    code, said = checked(file)
    assert (code, "stream one begins at 2126-01-01T00:00:00+00:00, in " in said) == (0, True)
    ahead = LiveStream(read_config(file).streams[0], ManualClock())
    ahead.publisher.publish(0, [0, 0])
    ahead.stop()
    code, said = checked(file)
    assert code == 0
    assert "store of stream one is ahead of this machine's clock: steps are released up to 2126-01-01T00:10" in said


def test_a_store_of_other_settings_is_refused_unless_a_new_epoch_is_meant(tmp_path):
    file = written(tmp_path, PEOPLE + a_stream())
    LiveStream(read_config(file).streams[0], ManualClock()).stop()
    assert checked(file)[0] == 0
    file.write_text(PEOPLE + a_stream(epsilon=0.25))
    code, said = checked(file)
    assert (code, "is right" in said) == (2, False)
    assert "begins a new epoch, which `serve` does only with --new-epoch: epsilon (0.5 before, 0.25 now)" in said
    assert checked(file, "--new-epoch")[0] == 0
