"""Studies as TOML: what they unfold into, what is refused and on which line, who may take part."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from documents import blocks

from eventide.bench import builtin_studies, check_requirements, load_study, read_results, repeat_cell, run_study
from eventide.bench.run.runner import releases
from eventide.bench.study.study import Looked
from eventide.errors import InputError
from eventide.streams.real import REAL_STREAMS

ROOT = Path(__file__).parents[3]
GOOD = """\
seed = 3
repetitions = 2
metrics = ["mae", "mre"]
sanity_bound = 0.01

[[mechanisms]]
vary.name = ["uniform", "sample"]

[[mechanisms]]
name = "hybrid"
k = 2

[[streams]]
generator = "constant"
length = 20
vary.level = [10, 20]

[[streams]]
file = "counts.csv"
columns = ["b"]

[[privacy]]
window = 4
vary.epsilon = [0.5, 1.0]

[[privacy]]
epsilon = 1.0
vary.window = [2, 4]
"""
PEEK = """

class Peek(Mechanism):
    def release(self, counts):
        return counts
"""
FRAME = """
import numpy as np
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import share

class Theirs(Mechanism):
    def is_sampling_point(self, step):
        return np.full((self.replicas, 1), True)

    def budget_allocation(self):
        return share(self.nano_epsilon, 1, self.window).reshape(1, 1)
"""
NOT_CAUSAL = """
    seen = {}

    def perturbation(self, step, amount):
        measured = super().perturbation(step, amount)
        type(self).seen[self.step] = measured.values[:1].copy()
        return measured

    def filtering(self, measured):
        ahead = type(self).seen.get(self.step + 1)
        return super().filtering(measured) if ahead is None else np.broadcast_to(ahead, self.meter.shape) * 1.0
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a study from a text, in a folder with a file of counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("EVENTIDE_DATA", raising=False)
    (tmp_path / "counts.csv").write_text("a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n")

    def loaded(text, **keywords):
        (tmp_path / "study.toml").write_text(text)
        return load_study(tmp_path / "study.toml", **keywords)

    return loaded


def module(name, text):
    Path(f"{name}.py").write_text(text)


def test_a_study_unfolds_into_cells(load):
    study = load(GOOD)
    assert [mechanism.label for mechanism in study.mechanisms] == ["uniform", "sample", "hybrid k=2"]
    assert [stream.label for stream in study.streams] == [
        "constant length=20 level=10",
        "constant length=20 level=20",
        "counts.csv columns=b",
    ]
    assert [(setting.experiment, setting.epsilon, setting.window) for setting in study.settings] == [
        ("vary epsilon", 0.5, 4),
        ("vary epsilon", 1.0, 4),
        ("vary window", 1.0, 2),
        ("vary window", 1.0, 4),
    ]
    assert len(study.cells) == 3 * 3 * 4
    assert (study.name, study.seed, study.repetitions, study.metrics) == ("study", 3, 2, ("mae", "mre"))


def test_a_file_is_found_beside_the_study_and_its_columns_are_chosen(load):
    stream = load(GOOD).streams[2]
    assert stream.read().tolist() == [[2], [4], [6], [8], [10]]
    assert not stream.public


EVENTS = """timestamp,user,bin
2013-01-01 05:15,a,east
2013-01-01 06:59,b,west
2013-01-01 06:00,a,west
2013-01-01 08:00,c,east
"""


def test_a_file_of_events_is_counted(load):
    Path("events.csv").write_text(EVENTS)
    study = load(GOOD.replace('file = "counts.csv"\ncolumns = ["b"]', 'events = "events.csv"\nstep = "1h"'))
    stream = study.streams[2]
    assert stream.read().tolist() == [[1, 0], [0, 2], [0, 0], [1, 0]]
    assert (stream.label, stream.public) == ("events.csv step=1h", False)
    run_study(study, "results.parquet")
    rows = read_results("results.parquet").table.to_pylist()
    assert {(row["stream_source"], row["steps"], row["bins"]) for row in rows} >= {("events", 4, 2)}


RIDES = """timestamp,user,bin,fare
2013-01-01 05:15,a,east,3
2013-01-01 05:25,a,east,7.5
2013-01-01 06:59,b,west,900
2013-01-01 06:00,a,west,1
"""
OF_RIDES = 'events = "rides.csv"\nstep = "1h"\nuser = "user"\nstatistic = "{}"{}'
BETWEEN = '\nbetween = "fare=0,10,0.5"'


def of_rides(statistic, more=""):
    Path("rides.csv").write_text(RIDES)
    return GOOD.replace('file = "counts.csv"\ncolumns = ["b"]', OF_RIDES.format(statistic, more))


def test_people_and_sums_of_a_file_of_events_are_studied(load):
    people = load(of_rides("people")).streams[2]
    assert (people.read().tolist(), people.sensitivity) == ([[1, 0], [0, 2]], 1)
    study = load(of_rides("sum:fare", BETWEEN))
    sums = study.streams[2]
    assert (sums.read().tolist(), sums.sensitivity) == ([[21, 0], [0, 22]], 20)  # in halves; 900 is cut to 10
    assert "statistic=sum:fare" in sums.label
    uniform = next(cell for cell in study.cells if cell.stream is sums and cell.mechanism.name == "uniform")
    (block, *_) = releases(study, [uniform], Looked.side_by_side(sums.look()), 0, 200)
    assert block.truth[:, 0, 0].tolist() == [[10.5, 0], [0, 11]]  # in the unit of the column
    errors = np.abs(block.released - block.truth).mean()
    scale = 10 * uniform.setting.window / uniform.setting.epsilon
    assert 0.5 * scale < errors < 2 * scale
    run_study(study, "results.parquet")


@pytest.mark.parametrize(
    ("statistic", "more", "says"),
    [
        ("people/1d", "", "'people/1d' cannot be studied; choose one statistic of steps"),
        ("mean:fare", "", "needs the range of fare"),
        ("quantiles:fare", "", "needs the buckets of fare"),
        ("mean:fare", BETWEEN + "\nspan = 3", "span is for counts of events and people"),
        ("mean:fare", BETWEEN + "\nmerge = 2", "mean:fare of several steps of rides.csv do not add up"),
        ("sum:fare", "", "needs the range of fare"),
        ("sum:fare", '\nbetween = "fare=0,10"\nworkload = "special"', "window queries are of events"),
        ("people", "\nmerge = 2", "people of several steps of rides.csv do not add up"),
        ("sum:user", '\nbetween = "user=0,10"', "row 1 has no number in column 'user'"),
    ],
)
def test_what_cannot_be_studied_of_events_is_said(load, statistic, more, says):
    with pytest.raises(InputError, match=says):
        load(of_rides(statistic, more))


def test_dates_in_a_study_are_dates_of_events(load):
    Path("events.csv").write_text(EVENTS)
    text = GOOD.replace('file = "counts.csv"\ncolumns = ["b"]', 'events = "events.csv"\nstep = "1h"\nSTART')
    for start in ("start = 2013-01-01T06:00:00", 'start = "2013-01-01 06:00"'):
        study = load(text.replace("START", start))
        assert study.streams[2].read().tolist() == [[0, 2], [0, 0], [1, 0]]
        run_study(study, "results.parquet")
        Path("results.parquet").unlink()
    for start, words in (("stop = 1", "no parameter 'stop' of events.csv"), ("merge = 0", "merge is 0")):
        with pytest.raises(InputError, match=f"line 21: .*{words}"):
            load(text.replace("START", start))


def test_steps_are_merged_and_a_short_rest_is_left_out(load):
    study = load(GOOD.replace('columns = ["b"]', "merge = 2"))
    assert study.streams[2].read().tolist() == [[4, 6], [12, 14]]


def test_parts_can_be_confined_to_experiments(load):
    confined = GOOD.replace("k = 2", 'k = 2\nexperiments = ["vary window"]')
    cells = load(confined).cells
    assert len(cells) == 3 * 3 * 4 - 3 * 2
    assert {cell.setting.experiment for cell in cells if cell.mechanism.name == "hybrid"} == {"vary window"}


def test_every_cell_has_a_seed_of_its_own_that_others_do_not_change(load):
    study = load(GOOD)
    seeds = [study.seed_of(cell) for cell in study.cells]
    assert len(set(seeds)) == len(seeds)
    fewer = load(GOOD.replace('["uniform", "sample"]', '["sample"]'))
    assert {fewer.seed_of(cell) for cell in fewer.cells} < set(seeds)
    other = load(GOOD.replace("seed = 3", "seed = 4"))
    assert not {other.seed_of(cell) for cell in other.cells} & set(seeds)


def test_the_filter_of_a_mechanism_comes_before_that_of_the_study(load):
    text = 'filter = "truncate"\n' + GOOD.replace("k = 2", 'filter = "repeat"')
    study = load(text)
    assert [mechanism.filter for mechanism in study.mechanisms] == ["truncate", "truncate", "repeat"]
    assert study.mechanisms[0].label == "uniform"
    built = study.mechanisms[0].build(study.settings[0], 3, 2, noise="secure")
    assert (built.size, built.replicas, type(built.filter).__name__) == (3, 2, "Truncate")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"uniform", "sample"', '"uniform", "smaple"', 7, "no mechanism 'smaple'; did you mean 'sample'?"),
        ('name = "hybrid"', "", 9, "no mechanism"),
        ("[[streams]]\nfile", "[[streems]]\nfile", 18, "no key 'streems'; did you mean 'streams'?"),
        ('name = "hybrid"', 'name = ["hybrid", "ba"]', 10, "name holds one name; for several write vary.name = [...]"),
        ('"constant"', '["constant"]', 14, "generator holds one name"),
        ("k = 2", "kk = 2", 11, "no parameter 'kk' of hybrid; did you mean 'k'?"),
        ("k = 2", "k = 0", 10, "k is 0"),
        ("k = 2", "seed = 2", 11, "set by the study"),
        ("k = 2", 'filter = "trunkate"', 11, "did you mean 'truncate'?"),
        ("k = 2", 'experiments = ["vary windows"]', 11, "did you mean 'vary window'?"),
        ('name = "hybrid"\nk = 2', 'name = "sample"', 9, "'sample' stands here twice"),
        ("[0.5, 1.0]", "[0.5, -1.0]", 24, "epsilon is -1.0"),
        ("epsilon = 1.0", 'epsilon = "much"', 27, "not a number that epsilon can be"),
        ("epsilon = 1.0", "", 26, "epsilon is missing"),
        ("epsilon = 1.0", "epsilon = [1.0, 2.0]", 27, "; for several write vary.epsilon = [...]"),
        ('name = "hybrid"', 'name = "Hybrid"', 10, "no mechanism 'Hybrid'; did you mean 'hybrid'?"),
        ('name = "hybrid"', 'name = "mine"', 10, "rg-window-baseline, module:Class of your own"),
        ("vary.window = [2, 4]", "vary.window = [2, 0]", 28, "window is 0"),
        ("vary.window = [2, 4]", "vary.window = 2", 28, "vary holds lists"),
        ("vary.window = [2, 4]", "vary.window = [2, 2]", 26, "stands here twice"),
        ("vary.window = [2, 4]", "vary.windov = [2, 4]", 28, "did you mean 'window'?"),
        ("repetitions = 2", "repetitions = 0", 2, "repetitions is 0"),
        ("repetitions = 2", "", 1, "repetitions is missing"),
        ("repetitions = 2", "repetition = 2", 2, "did you mean 'repetitions'?"),
        ("seed = 3", "seed = -3", 1, "a seed is a whole number"),
        ('["mae", "mre"]', '["maee"]', 3, "did you mean 'mae'?"),
        ('["mae", "mre"]', "[]", 3, "metrics is a list"),
        ("sanity_bound = 0.01", "sanity_bound = 0", 4, "a number above 0"),
        ("sanity_bound = 0.01", "sanity_bound = inf", 4, "a number above 0"),
        ("sanity_bound = 0.01", "crossing_tolerance = 1.5", 4, "a whole number of steps"),
        ("sanity_bound = 0.01", "crossing_tolerance = 3.0", 4, "a whole number of steps"),
        ("sanity_bound = 0.01", "crossing_tolerance = inf", 4, "a whole number of steps"),
        ('generator = "constant"', 'generator = "constand"', 14, "did you mean 'constant'?"),
        ('generator = "constant"', 'real = "flu_deaths"', 14, "did you mean 'flu_death'?"),
        ('generator = "constant"', "", 13, "a stream has one of generator, real, file, events"),
        ("length = 20", "lenght = 20", 15, "did you mean 'length'?"),
        ("length = 20", "length = 0", 14, "length and bins must be above 0"),
        ("length = 20", 'length = "long"', 15, "length is 'long'; it must be a number"),
        ("length = 20", "length = 1_000_000_000_000_000", 14, "allocate"),
        ("length = 20", 'public = "no"', 15, "public is 'no'; it must be true or false"),
        ('columns = ["b"]', 'columns = ["c"]', 20, "has no column 'c'"),
        ('columns = ["b"]', "merge = 9", 20, "it cannot be merged by 9"),
        ('file = "counts.csv"', 'file = "count.csv"', 19, "is not a file"),
        ('file = "counts.csv"\ncolumns = ["b"]', 'events = "counts.csv"', 18, "counts.csv needs step"),
        ("[[streams]]\nfile", "[streams]\nfile", 18, "is not TOML"),
    ],
)
def test_a_bad_study_is_refused_with_its_line(load, old, new, line, words):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(InputError, match=rf"study\.toml.*{re.escape(words)}") as refused:
        load(text)
    assert f"line {line}" in str(refused.value)


@pytest.mark.parametrize("table", ["mechanisms", "streams", "privacy"])
def test_a_study_without_a_part_is_refused(load, table):
    text = re.sub(rf"\[\[{table}\]\]\n(.+\n)+", "", GOOD)
    with pytest.raises(InputError, match=rf"at least one \[\[{table}\]\]$"):
        load(text)
    with pytest.raises(InputError, match=rf"at least one \[\[{table}\]\]; two brackets, since there may be several"):
        load(f"{text}\n[{table}]\nname = 1\n")


def test_inline_tables_work_and_their_line_is_found(load):
    head, tail = GOOD.split("[[mechanisms]]", 1)
    text = (
        head
        + 'mechanisms = [{ name = "uniform" }, { name = "sampel" }]\n\n[[streams]]'
        + tail.split("[[streams]]", 1)[1]
    )
    with pytest.raises(InputError, match="line 6: there is no mechanism 'sampel'"):
        load(text)
    assert len(load(text.replace("sampel", "sample")).mechanisms) == 2


def test_a_missing_real_stream_is_skipped_with_a_sentence(load):
    study = load(GOOD + '\n[[streams]]\nvary.real = ["flu_death", "state_flu"]\n')
    assert len(study.streams) == 3
    assert len(study.skipped) == 2
    assert "flu_death is skipped: no data folder was given" in study.skipped[0]


def test_a_stream_that_is_missing_several_times_is_told_once(load):
    study = load(GOOD + '\n[[streams]]\nreal = "flu_death"\nvary.merge = [1, 2]\n')
    assert len(study.skipped) == 1


def test_dots_after_the_columns_of_a_file_mean_that_there_are_more(load, tmp_path):
    text = GOOD.replace('columns = ["b"]', 'columns = ["z"]')
    with pytest.raises(InputError, match=r"its columns are [^.]+$"):
        load(text)
    (tmp_path / "counts.csv").write_text("a,b,c,d,e,f,g,h,i,j\n" + "1,2,3,4,5,6,7,8,9,0\n" * 8)
    with pytest.raises(InputError, match=r"its columns are a, b, c, d, e, f, g, h, i \.\.\.$"):
        load(text)


def test_a_study_with_nothing_but_missing_streams_says_so(load):
    text = re.sub(r"\[\[streams\]\]\n(.+\n)+", "", GOOD) + '\n[[streams]]\nreal = "flu_death"\n'
    with pytest.raises(InputError, match=r"no stream is left; stream flu_death is skipped: [^;]+; [^;]+$"):
        load(text)
    with pytest.raises(InputError, match=r"flu_death is skipped: .+; and 1 more$"):
        load(text + '[[streams]]\nreal = "state_flu"\n')


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"there is no study 'quik'; did you mean 'quick'\? \(or give a \.toml file\)"):
        load_study("quik")
    with pytest.raises(InputError, match=r"nowhere\.toml is not a file; check the path"):
        load_study(tmp_path / "nowhere.toml")
    (tmp_path / "picture.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read as a text file"):
        load_study(tmp_path / "picture.toml")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a small stand-in for every real stream."""
    folder = tmp_path_factory.mktemp("data")
    header, row = ",".join(f"c{column}" for column in range(25)), ",".join("7" * 25)
    (folder / "small.csv").write_text("\n".join([header] + [row] * 60) + "\n")
    (folder / "long.csv").write_text("high\n" + "0\n1\n" * 2500)
    small, long = {"file": "small.csv", "T": 60, "d": 25}, {"file": "long.csv", "T": 5000, "d": 1}
    entries = dict.fromkeys(REAL_STREAMS, small) | {"adult_income": long}
    (folder / "index.json").write_text(json.dumps(entries))
    return folder


@pytest.mark.parametrize("name", builtin_studies())
def test_built_in_studies_are_sound_and_meet_the_requirements(name, data):
    study = load_study(name, data)
    assert study.skipped == ()
    on_purpose = {
        "kellaris": {"M-R4", "P-R1"},  # it compares numbers of groups, and has one epsilon
        "retroactive": {"P-R2"},  # about single events
        "sliding": {"P-R2"},
    }
    assert missed(study).keys() == on_purpose.get(name, set())


def test_the_artificial_study_has_the_size_of_the_benchmark():
    study = load_study("paper-artificial")
    assert len(study.streams) == 20
    assert len(study.settings) == 11
    assert len(study.cells) * study.repetitions == 9 * 20 * 11 * 100


def missed(study):
    return {requirement.code: requirement.sentence for requirement in check_requirements(study) if not requirement.met}


def test_requirements_that_are_not_met_are_named(load):
    assert missed(load(GOOD)).keys() == {"S-R2", "E-2"}
    enough = GOOD.replace("repetitions = 2", "repetitions = 20").replace("columns", "public = true\ncolumns")
    assert missed(load(enough)) == {}
    for old, new, code, words in (
        ('"uniform", "sample"', '"uniform"', "M-R2", "lacks the baseline sample"),
        ("k = 2", "vary.k = [2, 3]", "M-R4", "hybrid runs with 2 sets of parameters"),
        ("k = 2", "k = 2\n[[mechanisms]]\nname = 'bd'\naccounting = 'fixed-bin'", "M-R1", "by bd accounting=fixed-bin"),
        ("k = 2", "sensitivity = 2\n[[mechanisms]]\nname = 'ba'\nsensitivity = 3", "M-R5", "values of sensitivity"),
        ("sanity_bound = 0.01", "", "E-1", "does not state the sanity bound"),
        ("vary.window = [2, 4]", "window = 4", "P-R2", "no experiment varies window"),
        ("vary.epsilon = [0.5, 1.0]", "epsilon = 1.0", "P-R1", "no experiment varies epsilon"),
    ):
        assert words in missed(load(enough.replace(old, new)))[code]


def test_a_baseline_must_take_part_in_every_experiment(load):
    confined = GOOD.replace('vary.name = ["uniform', 'experiments = ["vary epsilon"]\nvary.name = ["uniform')
    assert "'vary window' lacks the baselines uniform and sample" in missed(load(confined))["M-R2"]


def test_a_third_partys_mechanism_takes_part(load):
    module("sound", FRAME)
    study = load(GOOD.replace('name = "hybrid"\nk = 2', 'name = "sound:Theirs"'))
    assert "publish the code of sound:Theirs" in missed(study)["M-R3"]
    theirs, uniform = (
        next(cell for cell in study.cells if cell.mechanism.name == name) for name in ("sound:Theirs", "uniform")
    )
    assert repeat_cell(study, theirs)["mae"].mean() > 0
    assert not np.array_equal(repeat_cell(study, theirs)["mae"], repeat_cell(study, uniform)["mae"])


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("spender", FRAME.replace("self.window)", "2)"), "BudgetExceeded .*: asked for 0.5"),
        ("seer", FRAME + NOT_CAUSAL, "a change at step .* changed an earlier release"),
        ("crasher", FRAME.replace("True)", "oops)"), "NameError while checking"),
        ("stranger", "class Theirs: pass", "is no subclass"),
        ("empty", "", "cannot find empty:Theirs"),
        ("neighbour", FRAME + PEEK, "cannot import neighbour: Peek replaces what reads true counts"),
        ("lucky", FRAME.replace("True)", "np.random.random() < 0.5)"), "draws chance of its own"),
        ("blind", FRAME.replace("True)", "False)"), "it never measures"),
    ],
)
def test_a_third_partys_mechanism_is_refused_with_the_reason(load, name, text, reason):
    module(name, text)
    with pytest.raises(InputError, match=f"line 10: .*{reason}"):
        load(GOOD.replace('name = "hybrid"\nk = 2', f'name = "{name}:Theirs"'))


def test_what_is_added_to_a_study_has_no_line_in_it(load):
    module("sound2", FRAME)
    for name, parameters, says in (
        ("sound2:Theirs", {"toll": 3}, "--with: there is no parameter 'toll' of sound2:Theirs"),
        ("uniform", {}, "--with: the mechanism 'uniform' stands here twice"),
    ):
        with pytest.raises(InputError, match=f"^{says}"):
            load(GOOD, added={name: parameters})
    assert load(GOOD, added={"ba": {}}).text == GOOD + '\n[[mechanisms]]\n"name" = "ba"\n'


def test_a_stream_shorter_than_a_window_is_named(load):
    study = load(GOOD.replace("[2, 4]", "[2, 6]"))
    (said,) = study.short_streams()
    assert said.startswith("counts.csv")
    assert said.endswith("is shorter than a window of 6 steps (length 5): no window is whole")
    assert load(GOOD).short_streams() == []


@pytest.mark.slow
def test_the_example_in_the_documentation_runs(load, tmp_path):
    found = blocks((ROOT / "docs" / "how-to" / "studies.md").read_text())
    python = [block.code for block in found if block.language == "python"]
    toml, _ = (block.code for block in found if block.language == "toml")  # the other is about values
    assert len([line for line in python[0].splitlines() if line.strip()]) <= 10
    module("ours", python[0])
    Path("ours.toml").write_text(toml)
    study = load_study("ours.toml")
    run_study(study, "ours.parquet")
    assert read_results("ours.parquet").table.num_rows == len(study.cells) * len(study.metrics)
    exec(compile(python[1], "studies.md", "exec"), {})


def test_the_first_study_includes_the_mechanism_that_is_published_with_by_default():
    assert "tide" in {cell.mechanism.name for cell in load_study("quick").cells}
