"""Recorded answers: a step taken again from the answers of a meter, without counts and without draws."""

import numpy as np
import pytest

import eventide as ev
from eventide.mechanisms.base import Mechanism
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Source
from eventide.privacy.partition import Partition
from eventide.privacy.recorded_answers import RecordedAnswers, replay

STEPS, BINS = 120, 6
VARIANTS = [(name, {}) for name in ev.mechanism_names()]
VARIANTS += [(name, {"groups": 2}) for name in ("bd", "ba")]
VARIANTS += [(name, {"shift_budget": True}) for name in ("bd", "ba")]
VARIANTS += [(name, {"pan_private": mode}) for name in ("bd", "ba") for mode in ("single", "announced")]
VARIANTS += [(name, {"as_published": True}) for name in ("dsat", "spas", "adapub")]
VARIANTS += [("uniform", {"filter": ev.filters.Kalman()}), ("ba", {"filter": ev.filters.Truncate()})]
VARIANTS += [("uniform", {"window": 1}), ("dsat", {"window": 1})]


def stream():
    """Counts that stand still, jump and die down, so that every kind of decision is met."""
    generator = np.random.default_rng(5)
    level = np.repeat(generator.integers(0, 300, (STEPS // 20, BINS)), 20, axis=0)
    return generator.poisson(level)


def made(name, parameters):
    return ev.mechanism(name, **{"epsilon": 2, "window": 7, "bins": BINS, "seed": 3} | parameters)


class NoDraws(Source):
    """A source that must not be asked."""

    name = "seeded"

    def laplace(self, numerator, charges, shape):
        assert not charges.any(), "a replay drew noise"
        return np.zeros(shape, np.int64)

    def binomial(self, counts, percent):
        raise AssertionError("a replay drew a sample")


def rebuilt(fresh, snapshot, records):
    """The mechanism from a snapshot and the answers since, with no noise to draw from."""
    mechanism = fresh if snapshot is None else ev.load(snapshot)
    noise = mechanism.meter.source
    mechanism.meter.source = NoDraws()
    for answers in records:
        with replay(mechanism.meter, answers):
            mechanism.release(np.zeros(BINS, dtype=np.int64))
    mechanism.meter.source = noise
    return mechanism


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return type(one) is type(other) and one == other


def told(release):
    return [release.step, release.fresh, release.spent, release.values.tolist(), release.scale.tolist()]


@pytest.mark.parametrize(("steps", "interruptions"), [(60, 3), pytest.param(STEPS, 25, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_a_rebuilt_mechanism_is_the_one_that_was_never_interrupted(name, parameters, steps, interruptions):
    counts, twin = stream()[:steps], made(name, parameters)
    snapshot, records = None, []
    interrupted = set(np.random.default_rng(8).choice(steps, interruptions, replace=False).tolist())
    followers = []
    for step, row in enumerate(counts):
        with RecordedAnswers.recording(twin.meter) as answers:
            release = twin.release(row)
        for follower in followers:
            assert told(follower.release(row)) == told(release)
        if answers.whole:
            records.append(answers.data())
        else:
            snapshot, records = twin.save(), []
        if step in interrupted:
            again = rebuilt(made(name, parameters), snapshot, records)
            again.source.restore(twin.source.snapshot())
            assert same(again.snapshot(), twin.snapshot()), f"after step {step}"
            followers = [*followers[-2:], again]


@pytest.mark.parametrize("name", ["uniform", "sample", "hybrid", "bd", "ba", "fast", "rescuedp"])
def test_where_nothing_is_hidden_no_snapshot_is_ever_needed(name):
    mechanism = made(name, {})
    for row in stream():
        with RecordedAnswers.recording(mechanism.meter) as answers:
            mechanism.release(row)
        assert answers.whole


def test_the_same_step_gives_the_same_bytes():
    first, second = (made("ba", {}) for _ in range(2))
    for row in stream()[:20]:
        with RecordedAnswers.recording(first.meter) as one, RecordedAnswers.recording(second.meter) as other:
            first.release(row)
            second.release(row)
        assert one.data() == other.data()


@pytest.mark.parametrize(("largest", "size"), [(127, 1), (-128, 1), (128, 2), (-129, 2), (2**31, 8), (-(2**63), 8)])
def test_whole_numbers_take_as_few_bytes_as_they_need_and_come_back_as_they_were(largest, size):
    meter, counts = Meter(WindowLedger(1, 3), ev.noise.Zero(), 900), np.array([[largest, *range(-64, 64)]])
    with RecordedAnswers.recording(meter) as answers:
        answers.answer("counts", counts.shape, lambda: counts)
        answers.answer("bits", (2,), lambda: np.array([True, False]))
    assert len(answers.data()) < 129 * size + 320
    with replay(meter, answers.data()):
        back = meter.recorded.answer("counts", counts.shape, None)
        assert meter.recorded.answer("bits", (2,), None).tolist() == [True, False]
    assert (back.tolist(), back.dtype) == (counts.tolist(), np.int64)


def test_no_true_count_is_recorded():
    secret = 123_456_789
    meter = Meter(WindowLedger(1, 3), ev.noise.Seeded(1), 4)
    step = meter.seal(np.full((1, 4), secret))
    with RecordedAnswers.recording(meter) as answers:
        some = np.array([[0, 100_000_000, 0, 0]])
        meter.counts(step, some)
        meter.counts(step, np.array([[0, 100_000_000]]), Partition(np.array([0, 1, 1, 0]), 2))
        meter.distance(step, np.zeros(4), np.array([[0]]))
        meter.thinned(step, np.array([[50]]), some)
    data = answers.data()
    for hidden in (secret, 2 * secret, 4 * secret, secret // 2):
        assert hidden.to_bytes(4, "little") not in data


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("dsat", {"open test", "test", "counts"}),
        ("pegasus", {"group test", "counts"}),
        ("rg", {"add", "thinned counts", "sum over steps"}),
    ],
)
def test_whatever_is_asked_is_recorded(name, kinds):
    mechanism, asked = made(name, {}), set()
    for row in stream():
        with RecordedAnswers.recording(mechanism.meter) as answers:
            mechanism.release(row)
        asked |= {kind for kind, _ in answers._answers}
    assert asked == kinds


def test_slots_are_recorded():
    plan = ev.windows.plan([ev.Query(window=2, step=2)]).start(noise=ev.noise.Seeded(1))
    with RecordedAnswers.recording(plan.meter) as answers:
        plan.push_many(np.arange(6))
    assert [(kind, values.shape) for kind, values in answers._answers] == [("slots", (3, 1, 1))]
    assert not answers.whole


def recorded():
    mechanism = made("ba", {})
    with RecordedAnswers.recording(mechanism.meter) as answers:
        mechanism.release(stream()[0])
    return answers.data()


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (("uniform", {}), "distance of shape .* where counts"),
        (("ba", {"bins": 5}), "shape"),
        (("ba", {"replicas": 2}), "shape"),
        (("rg", {}), "hidden|asked for"),
    ],
)
def test_answers_of_another_mechanism_are_refused(other, sentence):
    mechanism = made(*other)
    with pytest.raises(ev.StateError, match=sentence), replay(mechanism.meter, recorded()):
        mechanism.release(np.zeros(mechanism.size, dtype=np.int64))


def test_what_is_left_over_or_missing_is_refused():
    mechanism = made("sample", {})
    for row in stream()[:1]:
        mechanism.release(row)
    with pytest.raises(ev.StateError, match="were not asked for"), replay(mechanism.meter, recorded()):
        mechanism.release(np.zeros(BINS, dtype=np.int64))  # does not look
    empty = RecordedAnswers().data()
    mechanism = made("ba", {})
    with pytest.raises(ev.StateError, match="no recorded answer is left"), replay(mechanism.meter, empty):
        mechanism.release(np.zeros(BINS, dtype=np.int64))


def test_answers_that_are_not_whole_are_refused():
    mechanism = made("rg", {})
    with RecordedAnswers.recording(mechanism.meter) as answers:
        mechanism.release(stream()[0])
    assert not answers.whole
    with pytest.raises(ev.StateError, match="snapshot"), replay(made("rg", {}).meter, answers.data()):
        pass


def test_damaged_bytes_are_refused():
    data = recorded()
    for length in range(len(data)):
        mechanism = made("ba", {})
        with pytest.raises(ev.StateError), replay(mechanism.meter, data[:length]):
            mechanism.release(np.zeros(BINS, dtype=np.int64))
    with pytest.raises(ev.StateError, match="no recorded answers"), replay(made("ba", {}).meter, b"x" + data):
        pass


def test_a_meter_has_one_record_at_a_time():
    mechanism = made("ba", {})
    with (
        RecordedAnswers.recording(mechanism.meter),
        pytest.raises(ev.StateError, match="recorded or replayed already"),
        RecordedAnswers.recording(mechanism.meter),
    ):
        pass
    assert mechanism.meter.recorded is None


class Hider(Mechanism):
    """Draws something that nobody sees."""

    def is_sampling_point(self, step):
        self.meter._draw("secret", 1, np.array([[1000]]), (1, 1))
        return np.ones((1, 1), dtype=bool)

    def budget_allocation(self):
        return np.array([[self.nano_epsilon // self.window]])


def test_a_draw_that_is_no_answer_makes_the_answers_part():
    mechanism = Hider(epsilon=1, window=2, bins=2, seed=1)
    with RecordedAnswers.recording(mechanism.meter) as answers:
        mechanism.release([1, 2])
    assert not answers.whole
