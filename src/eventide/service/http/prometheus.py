"""Figures for Prometheus: about publishing, which is public, and for operators about events, which is not.

No label names a person or a bin, and without the right to operate nothing counts events. Sinks are named after files
and hosts, which are the operator's as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from eventide.service.live_stream import LiveStream

CONTENT_TYPE = CONTENT_TYPE_LATEST
Family = type[GaugeMetricFamily] | type[CounterMetricFamily]


def exposition(streams: Iterable[LiveStream], with_raw: bool) -> bytes:
    """The figures as Prometheus reads them."""
    registry = CollectorRegistry()
    registry.register(_Figures(list(streams), with_raw))
    return generate_latest(registry)


class _Figures(Collector):
    """Asks the streams at the moment somebody asks for figures."""

    def __init__(self, streams: list[LiveStream], with_raw: bool) -> None:
        self.streams = streams
        self.with_raw = with_raw

    def collect(self) -> Iterator[Metric]:
        """All figures."""
        gauge, counter = GaugeMetricFamily, CounterMetricFamily
        yield self._of_streams(gauge, "up", "1 while the stream publishes", lambda stream: float(stream.ready))
        overdue = "how long the next release is overdue, in whole steps"
        yield self._of_streams(gauge, "lag_seconds", overdue, lambda stream: stream.feed.lag())
        part = "part of the current window's budget that is spent; with a cap, part of epsilon that one person can lose"
        yield self._of_streams(gauge, "window_spent_ratio", part, LiveStream.part_spent)
        yield self._of_streams(counter, "releases", "releases in the store", lambda stream: stream.notices.last + 1)
        if self.with_raw:
            accepted, late = "events taken", "events after their step's deadline"
            yield self._of_streams(counter, "raw_accepted_events", accepted, lambda each: each.feed.totals.accepted)
            yield self._of_streams(counter, "raw_late_events", late, lambda each: each.feed.totals.late)
            left_out = "accepted events of released steps that the limits per person left out"
            yield self._of_streams(counter, "raw_left_out_events", left_out, lambda each: each.feed.left_out)
            name, by_cap = "raw_left_out_by_cap_events", "those of them that the cap alone left out"
            yield self._of_streams(counter, name, by_cap, lambda each: each.feed.left_out_by_cap)
            refused = counter("eventide_raw_refused_events", "events not taken", labels=["stream", "reason"])
            for stream in self.streams:
                for reason, count in stream.feed.totals.refused.items():
                    refused.add_metric([stream.settings.name, reason], count)
            yield refused
            yield from self._of_sinks()

    def _of_sinks(self) -> Iterator[Metric]:
        labels = ["stream", "sink"]
        behind = GaugeMetricFamily("eventide_sink_lag_steps", "releases that a sink does not have yet", labels=labels)
        failures = CounterMetricFamily("eventide_sink_failures", "how often a sink took nothing", labels=labels)
        for stream in self.streams:
            for sink in stream.publisher.sinks():
                behind.add_metric([stream.settings.name, sink.name], stream.notices.last - sink.last)
                failures.add_metric([stream.settings.name, sink.name], sink.failures)
        yield behind
        yield failures

    def _of_streams(self, kind: Family, name: str, text: str, value: Callable[[LiveStream], float]) -> Metric:
        figure = kind(f"eventide_{name}", text, labels=["stream"])
        for stream in self.streams:
            figure.add_metric([stream.settings.name], value(stream))
        return figure
