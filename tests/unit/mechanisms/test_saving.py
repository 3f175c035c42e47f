"""Saved states: plain data, whole or refused."""

import io
import json
import zipfile

import numpy as np
import pytest

import eventide as ev
from eventide.mechanisms.base import Mechanism


def saved(**parameters):
    mech = ev.BudgetAbsorption(epsilon="1/3", window=4, bins=["a", "b"], **parameters)
    ev.run(mech, [[5, 6], [7, 8], [9, 1000]])
    return mech.save()


def test_it_is_a_zip_of_json_and_arrays():
    with zipfile.ZipFile(io.BytesIO(saved())) as archive:
        document, *arrays = archive.namelist()
        assert document == "state.json"
        assert json.loads(archive.read(document))["epsilon"] == 333_333_333
        for name in arrays:
            np.load(io.BytesIO(archive.read(name)), allow_pickle=False)


@pytest.mark.parametrize("noise", ["secure", "opendp", ev.noise.Seeded(3), ev.noise.Zero(), ev.noise.Unit()])
def test_parameters_come_back(noise):
    loaded = ev.load(saved(noise=noise, sensitivity=2, replicas=2, shift_budget=True, filter=ev.filters.Truncate()))
    assert (loaded.nano_epsilon, loaded.window, loaded.bins) == (333_333_333, 4, ("a", "b"))
    assert (loaded.sensitivity, loaded.replicas, loaded.shift_budget, loaded.step) == (2, 2, True, 3)
    assert isinstance(loaded.filter, ev.filters.Truncate)
    assert loaded.source.name == (noise if isinstance(noise, str) else noise.name)


def test_a_private_mechanism_stays_private():
    assert not str(ev.load(saved()).guarantee).startswith("NOT PRIVATE")


@pytest.mark.parametrize("level", [None, 6, 9])
def test_a_state_is_read_however_it_was_compressed(level):
    older, kind = io.BytesIO(), zipfile.ZIP_STORED if level is None else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(io.BytesIO(saved(seed=3))) as archive, zipfile.ZipFile(older, "w") as copy:
        for name in archive.namelist():
            copy.writestr(zipfile.ZipInfo(name), archive.read(name), kind, level)
    one, other = ev.load(saved(seed=3)), ev.load(older.getvalue())
    assert np.array_equal(one.release([5, 6]).values, other.release([5, 6]).values)


@pytest.mark.parametrize("cut", [0, 10, 200, -30])
def test_a_cut_state_is_refused(cut):
    with pytest.raises(ev.StateError):
        ev.load(saved()[:cut])


def test_a_flipped_bit_is_refused():
    data = saved()
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        try:
            loaded = ev.load(bytes(damaged))
        except ev.EventideError:
            continue
        assert loaded.step == 3  # the flip hit a byte that carries nothing, such as a time stamp


@pytest.mark.parametrize("wrong", ["state.zip", None, 5])
def test_only_bytes_can_be_loaded(wrong):
    with pytest.raises(ev.StateError, match="bytes"):
        ev.load(wrong)


def rewritten(change):
    source, target = zipfile.ZipFile(io.BytesIO(saved())), io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if name == "state.json":
                document = json.loads(content)
                change(document)
                content = json.dumps(document).encode()
            archive.writestr(name, content)
    return target.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(version=99),
        lambda document: document.update(format="other"),
        lambda document: document.update(mechanism="os:system"),
        lambda document: document.update(noise="os.urandom"),
        lambda document: document["state"].pop("ledger"),
        lambda document: document["state"]["ledger"].update(extra=1),
        lambda document: document["parameters"].update(colour="red"),
        lambda document: document.pop("state"),
    ],
)
def test_another_version_or_shape_is_refused(change):
    with pytest.raises(ev.EventideError):
        ev.load(rewritten(change))
    assert ev.load(rewritten(lambda document: None)).step == 3


class Own(Mechanism):
    """A class that the registry does not know."""

    def is_sampling_point(self, step):
        return np.ones((self.replicas, 1), dtype=bool)

    def budget_allocation(self):
        return np.array([[self.nano_epsilon // self.window]])


def test_bytes_of_something_else_say_what_they_are():
    with pytest.raises(
        ev.StateError, match="of another kind, 'eventide running total'; load them with what saved them"
    ):
        ev.load(ev.windows.RunningTotal(1.0).save())


def test_a_class_of_somebody_elses_must_be_given():
    data = Own(epsilon=1, window=2, bins=1).save()
    with pytest.raises(ev.InputError, match=r"give its class, ev\.load\(data, Own\)"):
        ev.load(data)
    assert isinstance(ev.load(data, Own), Own)


class Halved(ev.filters.Repeat):
    """A filter that the registry does not know."""

    def step(self, measured):
        return super().step(measured) / 2


def test_a_filter_of_somebody_elses_must_be_given():
    data = ev.Uniform(epsilon=1, window=2, bins=1, filter=Halved()).save()
    with pytest.raises(ev.InputError):
        ev.load(data)
    assert isinstance(ev.load(data, filter=Halved()).filter, Halved)
