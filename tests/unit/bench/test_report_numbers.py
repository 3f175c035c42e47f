"""The numbers and the words of a report, against values worked out by hand."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import t

from eventide.bench.report.comparisons import (
    Weight,
    as_good_as_best,
    best_by,
    compare,
    influences,
    ranking,
    shifts,
    student_quantile,
)
from eventide.bench.report.figures import cells_figure, curve_figure, setting_labels
from eventide.bench.report.scores import Contest, ReportedStream, Scores
from eventide.bench.report.verdict import about_requirements, about_zeros, against_others, effect, verdict
from eventide.bench.reproduction.findings import among, findings
from eventide.bench.reproduction.reference import differences, read_reference, reasons_table
from eventide.bench.study.study import Setting
from eventide.display.drawings import CHANGE, DISTANCE
from eventide.errors import InputError

LOOSE, STRICT = Setting("vary epsilon", 1.0, 10), Setting("vary epsilon", 0.1, 10)


def make_field(mechanisms, cells, errors=0.0, repetitions=100):
    """A scores from {(amplitude, season, setting): means}."""
    streams, contests = {}, []
    for amplitude, season, setting in cells:
        label = f"amplitude={amplitude} season={season}"
        streams[label] = ReportedStream("seasonal", {"amplitude": amplitude, "season": season}, label)
        contests.append(Contest(label, setting))
    means = np.array(list(cells.values()), dtype=float)
    return Scores(
        "mae",
        repetitions,
        tuple(mechanisms),
        tuple(label.split()[0] for label in mechanisms),
        streams,
        tuple(contests),
        means,
        np.broadcast_to(np.asarray(errors, dtype=float), means.shape),
    )


@pytest.fixture
def scores():
    """Sample wins where the amplitude is small, uniform where it is large; the season changes nothing."""
    return make_field(
        ["uniform", "sample", "ba"],
        {
            (10, 40, LOOSE): [8, 1, 4],
            (10, 80, LOOSE): [16, 2, 8],
            (1000, 40, LOOSE): [5, 40, 20],
            (1000, 80, LOOSE): [10, 80, 40],
        },
    )


def test_distances_winners_and_wins(scores):
    assert scores.least.tolist() == [1, 2, 5, 10]
    assert scores.deltas.tolist() == [[8, 1, 4], [8, 1, 4], [1, 8, 4], [1, 8, 4]]
    assert scores.winners.tolist() == [1, 1, 0, 0]
    assert scores.wins() == {"uniform": 2, "sample": 2, "ba": 0}


def test_a_field_without_a_mechanism_is_judged_anew(scores):
    less = scores.without("sample")
    assert less.mechanisms == ("uniform", "ba")
    assert less.deltas.tolist() == [[2, 1], [2, 1], [1, 4], [1, 4]]
    assert scores.only("sample").deltas.tolist() == [[1]] * 4


def test_who_takes_no_part_in_a_cell_neither_wins_nor_loses_it():
    scores = make_field(["uniform", "ba groups=2"], {(1, 1, LOOSE): [2, math.nan], (1, 2, LOOSE): [4, 2]})
    assert scores.winners.tolist() == [0, 1]
    assert [(rank.mechanism, rank.cells, rank.typical) for rank in ranking(scores)] == [
        ("ba groups=2", 1, 1.0),
        ("uniform", 2, pytest.approx(math.sqrt(2))),
    ]
    assert len(scores.without("uniform").contests) == 1


def test_a_cell_whose_best_error_is_0_has_a_winner_and_no_distances():
    scores = make_field(["uniform", "sample"], {(1, 1, LOOSE): [3, 0], (1, 2, LOOSE): [4, 2]})
    assert scores.wins() == {"sample": 2, "uniform": 0}
    assert np.isnan(scores.deltas[0]).all()
    assert {rank.mechanism: rank.typical for rank in ranking(scores)} == {"sample": 1, "uniform": pytest.approx(2)}


def test_the_ranking_is_by_geometric_means(scores):
    ranks = {rank.mechanism: rank for rank in ranking(scores)}
    assert ranks["uniform"].typical == pytest.approx(math.sqrt(8))
    assert ranks["ba"].typical == pytest.approx(4)
    assert (ranks["sample"].best, ranks["sample"].worst, ranks["sample"].cells) == (2, 8, 4)


def test_intervals_come_from_drawing_streams_with_all_their_settings():
    cells = {(a, 1, s): [1, 2.0**power] for power, a in enumerate((1, 2, 3, 4)) for s in (LOOSE, STRICT)}
    rank = ranking(make_field(["uniform", "ba"], cells))[1]
    draws = np.random.default_rng(5).integers(0, 4, (20_000, 4)).mean(axis=1)  # log2 of the geometric mean
    expected = 2 ** np.quantile(draws, [0.025, 0.975])
    assert rank.typical == pytest.approx(2**1.5)
    assert [rank.low, rank.high] == pytest.approx(expected.tolist(), rel=0.01)


def test_two_streams_are_too_few_for_an_interval():
    ranks = ranking(make_field(["uniform", "ba"], {(1, 1, LOOSE): [1, 2], (2, 1, LOOSE): [1, 3]}))
    assert all(math.isnan(rank.low) and math.isnan(rank.high) for rank in ranks)


def test_students_quantile_is_near_the_exact_one():
    for freedom in (3, 5, 19, 99):
        assert student_quantile(0.95, freedom) == pytest.approx(t.ppf(0.975, freedom), abs=0.01)
    assert math.isnan(student_quantile(0.95, 2))


@pytest.mark.parametrize(("gap", "as_good"), [(2.7, True), (2.9, False)])
def test_as_good_as_the_best_within_students_interval(gap, as_good):
    scores = make_field(["uniform", "ba"], {(1, 1, LOOSE): [10, 10 + gap]}, errors=1.0)
    assert 2.7 < student_quantile(0.95, 99) * math.sqrt(2) < 2.9
    assert as_good_as_best(scores).tolist() == [[True, as_good]]


def test_with_too_few_repetitions_only_the_winner_is_as_good():
    scores = make_field(["uniform", "ba"], {(1, 1, LOOSE): [10, 10.1]}, errors=5.0, repetitions=3)
    assert as_good_as_best(scores).tolist() == [[True, False]]


def test_amplitude_decides_and_season_does_not(scores):
    amplitude, season = influences(scores)
    assert (amplitude.parameter, amplitude.pairs, amplitude.weight) == ("amplitude", 2, Weight.DECIDES)
    assert amplitude.factor == pytest.approx(8 ** (2 / 3))  # 8, 8 and 1
    assert amplitude.same_winner == 0
    assert (season.parameter, season.factor, season.same_winner) == ("season", 1.0, 1.0)
    assert season.weight is Weight.DOES_NOT
    assert best_by(scores, "amplitude") == {10: Counter(sample=2), 1000: Counter(uniform=2)}


def test_the_verdict_says_the_opposite_of_opposite_data(scores):
    said = " ".join(verdict(scores))
    assert "Amplitude decides which mechanism is good; season does not decide." in said
    assert "Uniform and sample are each best in 2 of 4 cells; ba in none." in said
    assert "the baselines win most cells" in said
    assert "Most often best by amplitude: 10 sample (2 of 2), 1,000 uniform (2 of 2)." in said
    turned = make_field(
        ["uniform", "fast", "ba"],
        {
            (10, 40, LOOSE): [8, 2, 1],
            (10, 80, LOOSE): [8, 1, 9],
            (1000, 40, LOOSE): [80, 20, 10],
            (1000, 80, LOOSE): [80, 10, 90],
        },
    )
    said = " ".join(verdict(turned))
    assert "Season decides which mechanism is good; amplitude does not decide." in said
    assert "Fast and ba are each best in 2 of 4 cells; uniform in none." in said
    assert "the baselines do not win most cells" in said


def test_where_nothing_decides_the_verdict_says_so():
    flat = {(a, 1, s): [1, 2] for a in (1, 2, 3) for s in (LOOSE, STRICT)}
    assert "No parameter decides which mechanism is good; amplitude and epsilon do not decide." in verdict(
        make_field(["uniform", "ba"], flat)
    )


def test_only_who_competes_in_every_cell_comes_nearest_over_all_cells():
    cells = {(1, 1, LOOSE): [2, math.nan, 1], (1, 2, LOOSE): [4, 2, 9], (1, 3, LOOSE): [1, math.nan, 2]}
    said = " ".join(verdict(make_field(["uniform", "ba groups=2", "sample"], cells)))
    assert "Uniform comes nearest to the best over all cells" in said
    assert "groups=2 comes nearest" not in said


def test_nothing_is_added_about_a_mechanism_that_wins_every_cell():
    said = " ".join(verdict(make_field(["uniform", "sample"], {(1, 1, LOOSE): [1, 2], (1, 2, LOOSE): [1, 3]})))
    assert "Uniform is best in 2 of 2 cells" in said
    assert "comes nearest" not in said


def test_with_too_few_repetitions_no_confidence_is_claimed():
    cells = {(1, 1, LOOSE): [1.0, 1.01]}
    few, many = (" ".join(verdict(make_field(["uniform", "sample"], cells, 1.0, n))) for n in (3, 4))
    assert "3 repetitions cannot tell whether a winner won by chance" in few
    assert "confidence" not in few
    assert "In 1 of 1 cells the best two are too close to tell apart (95 % confidence)" in many


def test_a_reason_is_told_once_for_all_parameters_of_a_mechanism():
    rows = reasons_table(make_field(["bd", "bd groups=1", "ba"], {(1, 1, LOOSE): [1, 2, 3]})).rows
    assert [name for name, _ in rows] == ["bd", "ba"]


def test_the_effect_of_a_mechanism_is_its_error_over_the_best_other(scores):
    assert against_others(scores, "ba").tolist() == [4, 4, 4, 4]
    assert against_others(scores, "uniform").tolist() == [8, 8, 0.25, 0.25]
    assert effect(scores, "uniform") == (
        "Uniform beats the best of all others in 2 of 4 cells; its error is 1.41 times theirs in the geometric mean, "
        "and 8 times in its worst cell (amplitude=10 season=40, epsilon 1, w 10)."
    )


def test_zeros_count_where_their_error_is_known_and_no_larger(scores):
    zeros = {"amplitude=10 season=40": 1.0, "amplitude=1000 season=40": 5.1}
    assert about_zeros(scores, zeros) == [
        "Releasing zeros for ever would be no worse than the best mechanism in 1 of 2 cells."
    ]
    assert about_zeros(scores, {}) == []


def test_requirements_that_fail_are_named():
    met = {"code": "M-R2", "met": True, "sentence": "both baselines take part"}
    missed = {"code": "E-2", "met": False, "sentence": "3 repetitions are too few"}
    assert about_requirements([met]) == "The study meets all 1 requirements of the w-event benchmark."
    assert "misses 1 of 2" in about_requirements([met, missed])
    assert "E-2 (3 repetitions are too few)" in about_requirements([met, missed])


def test_changes_are_ratios_with_intervals_that_hold_together(scores):
    small = make_field(["ba", "fast"], {(10, 40, LOOSE): [2, 1], (10, 80, LOOSE): [8, 1], (9, 9, LOOSE): [1, 1]}, 0.02)
    noisy = make_field(scores.mechanisms, {(10, 40, LOOSE): [8, 1, 4], (10, 80, LOOSE): [16, 2, 8]}, errors=0.04)
    first, second = compare(noisy, small)
    assert (first.mechanism, first.ratio, first.kind, second.ratio, second.kind) == ("ba", 2, "worse", 1, "same")
    reach = student_quantile(1 - 0.05 / 2, 99) * math.hypot(0.04 / 4, 0.02 / 2)
    assert (first.low, first.high) == pytest.approx((2 * math.exp(-reach), 2 * math.exp(reach)))
    assert compare(small, noisy)[0].kind == "better"
    (shift,) = shifts([first, second])
    assert shift == ("ba", 2, pytest.approx(math.sqrt(2)), 1, 0, 1, 0)


def test_a_difference_within_the_noise_is_unclear():
    one = make_field(["ba"], {(1, 1, LOOSE): [10.0]}, errors=1.0)
    other = make_field(["ba"], {(1, 1, LOOSE): [11.0]}, errors=1.0)
    assert [change.kind for change in compare(one, other)] == ["unclear"]


def test_results_without_a_common_cell_cannot_be_compared(scores):
    with pytest.raises(InputError, match="no cell in common"):
        compare(scores, make_field(["uniform"], {(3, 3, LOOSE): [1]}))


def test_a_setting_of_two_experiments_is_said_to_count_twice(scores):
    assert "under 1 privacy setting, each run" in verdict(scores)[0]
    again = Setting("vary window", LOOSE.epsilon, LOOSE.window)
    twice = make_field(
        ["uniform", "sample"], {(10, 40, LOOSE): [8, 1], (10, 40, again): [9, 2], (10, 40, STRICT): [9, 2]}
    )
    assert "under 3 privacy settings (2 different ones: what stands in two experiments" in verdict(twice)[0]


def test_who_is_as_often_best_is_named_as_well():
    cells = {(a, s, LOOSE): [1, 9] if a == 10 or s == 40 else [9, 1] for a in (10, 1000) for s in (40, 80)}
    said = verdict(make_field(["uniform", "sample"], cells))
    assert "Most often best by amplitude: 10 uniform (2 of 2), 1,000 uniform and sample (1 of 2 each)." in said


def test_the_findings_say_who_is_left_out():
    field = make_field(["uniform", "sample", "ours:EveryOther", "tide"], {(10, 40, LOOSE): [2, 3, 1, 1]})
    assert "the 9 mechanisms of that benchmark" in among(field)
    assert among(field).endswith("; ours:EveryOther, tide are left out here.")
    assert among(field.only("uniform")).endswith("as far as they compete.")


def test_findings_are_looked_for_among_the_benchmarks_mechanisms():
    names = ["uniform", "sample", "pegasus", "adapub", "tide"]
    cells = {
        (10, 40, STRICT): [8, 1, 4, 4, 0.1],
        (10_000, 40, LOOSE): [4, 9, 5, 5, 0.1],
        (100, 40, LOOSE): [3, 1, 2, 2, 0],
    }
    found = {finding.published: finding.here for finding in findings(make_field(names, cells))}
    assert found["Uniform or Sample is among the best nearly everywhere."].words.startswith("one is best in 3 of 3")
    assert found["Sample is best at amplitude 10 and epsilon 0.1."].holds
    assert found["AdaPub is best at amplitude 10,000 and epsilon 1."] == ("uniform is best in 1 of 1 such cells", False)
    grouped = found["PeGaSus and AdaPub are not better than Uniform, whose noise they smooth."]
    assert grouped == ("PeGaSus beats it in 2, AdaPub in 2 of 3 cells", False)
    assert not any("RescueDP" in published for published in found)


def test_the_reference_is_compared_cell_by_cell(tmp_path, scores):
    path = tmp_path / "reference.csv"
    path.write_text(
        "season,amplitude,epsilon,window,experiment,mechanism,mae_mean\n"
        "40,10,1.0,10,eps,uniform,4\n40,10,1.0,10,w,uniform,12\n80,10,1.0,10,eps,uniform,4\n40,1000,1.0,10,eps,ba,20\n"
    )
    uniform, ba = differences(scores, read_reference(path))
    assert (uniform.mechanism, uniform.cells, uniform.off) == (
        "uniform",
        2,
        1,
    )  # 8 over the mean of 4 and 12; 16 over 4
    assert uniform.ratio == pytest.approx(2)
    assert uniform.by_amplitude == {10: pytest.approx(2)}
    assert (ba.mechanism, ba.ratio, ba.off) == ("ba", 1, 0)


@pytest.mark.parametrize("text", ["", "season,amplitude\n1,2\n", "a"])
def test_a_file_that_is_no_reference_is_refused(tmp_path, text):
    (tmp_path / "reference.csv").write_text(text)
    with pytest.raises(InputError, match="is no reference; give a CSV file with the columns season"):
        read_reference(tmp_path / "reference.csv")


def test_settings_are_labelled_by_what_varies():
    settings = [LOOSE, STRICT, Setting("w", 1.0, 5), Setting("w", 1.0, 7), Setting("fixed", 2.0, 3)]
    assert list(setting_labels(settings).values()) == ["ε 1", "ε 0.1", "w 5", "w 7", "w 3"]


def test_a_cell_that_two_experiments_have_is_drawn_once_as_the_first_measured_it():
    shared, longer = Setting("vary window", 1.0, 10), Setting("vary window", 1.0, 20)
    cells = {(1, 1, LOOSE): [4, 2], (1, 1, STRICT): [8, 2], (1, 1, shared): [6, 2], (1, 1, longer): [10, 2]}
    scores = make_field(["uniform", "ba"], cells)
    drawn = cells_figure(scores)
    assert drawn.charts[0].columns == ["ε 1", "ε 0.1", "w 20"]
    assert drawn.charts[0].ratios.tolist() == [[2, 4, 5]]
    assert len(drawn.table.rows) == 3
    curves = curve_figure(scores, scores.contests[0].stream, 1, None)
    assert [(panel.title, panel.curves[0].x, panel.curves[0].y) for panel in curves.charts] == [
        ("epsilon = 1", [10, 20], [4, 10]),
        ("w = 10", [0.1, 1], [8, 4]),
    ]
    assert len(curves.table.rows) == 3
    assert [rank.cells for rank in ranking(scores)] == [4, 4]  # both measurements count


def test_colours_lie_on_a_logarithmic_scale_and_end_at_its_ends():
    assert [DISTANCE.place(ratio) for ratio in (1, 10, 100, 1000)] == pytest.approx([0, 0.5, 1, 1])
    assert [CHANGE.place(ratio) for ratio in (0.1, 0.25, 1, 2, 4)] == pytest.approx([0, 0, 0.5, 0.75, 1])
