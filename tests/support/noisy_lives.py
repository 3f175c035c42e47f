"""Pan-private publishers of small streams of two bins and steps of a minute, with a clock that tests set."""

import json
from pathlib import Path

import eventide as ev
from eventide.events.clock import ManualClock
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.live.sources.line_by_line import FileLines
from eventide.live.stores.open_store import open_store
from eventide.live.stream_spec import StreamSpec

START = 1_767_225_600_000_000  # 2026-01-01
MINUTE = 60_000_000
BINS = ("a", "b")


def moment(minutes):
    return START + round(minutes * MINUTE)


def line(minutes, bin):
    return b'{"timestamp": %d, "bin": "%s"}\n' % (moment(minutes) // 1000, bin.encode())


def spec_of(mode="announced", **options):
    given = {"bins": BINS, "step": "1min", "start": "2026-01-01", "parameters": {"pan_private": mode}}
    return StreamSpec(**given | options)


def mechanism_of(mode="announced", name="bd", **given):
    return ev.mechanism(name, **{"epsilon": 1, "window": 8, "bins": BINS, "pan_private": mode} | given)


class Life:
    """A publisher of a file that is followed, or of another source; `feed` builds what counts the events."""

    def __init__(
        self,
        folder,
        store=None,
        *,
        source=None,
        mode="announced",
        noise=None,
        now=0,
        feed=NoisyFeed,
        given=(),
        begin=(),
        **options,
    ):
        self.path, self.clock = Path(folder) / "log.jsonl", ManualClock(moment(now))
        self.path.touch()
        source = FileLines(self.path, self.clock) if source is None else source(self.clock)
        spec = spec_of(mode, **options)
        self.feed = feed(source, clock=self.clock, **spec.counting())
        noise = ev.noise.Zero() if noise is None else noise
        mechanism = mechanism_of(mode, noise=noise, sensitivity=spec.max_per_step, **dict(given))
        if isinstance(store, Path | str):
            store = open_store(store, for_tests=True)
        self.publisher = ev.Publisher(self.feed, mechanism, store, **dict(begin))
        self.turns = self.publisher._closed_steps()

    def write(self, *events):
        with self.path.open("ab") as file:
            file.writelines(line(*event) for event in events)

    def turn(self):
        """Read one event, or look at the clock; or publish a step that is due, and say so."""
        closed = next(self.turns)
        if closed is not None:
            self.publisher._publish(closed)
        return closed is not None

    def go_to(self, minutes):
        """Let time pass, then read and publish until nothing is left to do but to wait, twice."""
        self.clock.set(moment(minutes))
        while self.clock.now() < moment(minutes) + 1_000_000:
            self.turn()

    def values(self):
        return [json.loads(line)["values"] for _, line in self.publisher.store.releases()]

    def close(self):
        self.publisher.close()
