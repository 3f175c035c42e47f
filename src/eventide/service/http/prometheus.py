"""Figures for Prometheus: about publishing, which is public, and for operators about events, which is not.

No label names a person or a bin, and without the right to operate nothing counts events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from eventide.privacy.amounts import NANO
from eventide.service.live_stream import LiveStream

CONTENT_TYPE = CONTENT_TYPE_LATEST


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
        yield self._gauge("up", "1 while the stream publishes", lambda stream: float(not stream.failed))
        overdue = "how long the next release is overdue, in whole steps"
        yield self._gauge("lag_seconds", overdue, lambda stream: stream.feed.lag())
        yield self._gauge("window_spent_ratio", "part of the current window's budget that is spent", _spent)
        releases = CounterMetricFamily("eventide_releases", "releases in the store", labels=["stream"])
        for stream in self.streams:
            releases.add_metric([stream.settings.name], stream.notices.last + 1)
        yield releases
        if self.with_raw:
            yield from self._raw()

    def _gauge(self, name: str, text: str, value: Callable[[LiveStream], float]) -> Metric:
        gauge = GaugeMetricFamily(f"eventide_{name}", text, labels=["stream"])
        for stream in self.streams:
            gauge.add_metric([stream.settings.name], value(stream))
        return gauge

    def _raw(self) -> Iterator[Metric]:
        accepted = CounterMetricFamily("eventide_raw_accepted_events", "events that count", labels=["stream"])
        late = CounterMetricFamily("eventide_raw_late_events", "events after their step's deadline", labels=["stream"])
        refused = CounterMetricFamily("eventide_raw_refused_events", "events not taken", labels=["stream", "reason"])
        for stream in self.streams:
            name, totals = stream.settings.name, stream.feed.totals
            accepted.add_metric([name], totals.accepted)
            late.add_metric([name], totals.late)
            for reason, count in totals.refused.items():
                refused.add_metric([name, reason], count)
        yield from (accepted, late, refused)


def _spent(stream: LiveStream) -> float:
    with stream.windows() as windows:
        return float(windows.now / (stream.settings.epsilon * NANO))
