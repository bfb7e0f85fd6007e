"""What the Temporal SDK measures, and what workflows count by its meter, as Prometheus metrics.

The SDK gives updates; here they become totals that a scrape reads. One place for all metrics of a
process, so that one address is scraped.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

from prometheus_client import Metric
from prometheus_client.registry import Collector
from temporalio.runtime import (
    BUFFERED_METRIC_KIND_COUNTER,
    BUFFERED_METRIC_KIND_HISTOGRAM,
    BufferedMetric,
    BufferedMetricUpdate,
    MetricBuffer,
    MetricBufferDurationFormat,
)

from fleet.figure import BUCKETS

BUFFER = 100_000
"""Updates between two drains; a storm of 500 incidents makes some ten thousand a second."""
DRAIN_EVERY = 1.0
MOST_SERIES = 5_000
"""Of all metrics together; what comes beyond is counted in one figure and not kept."""
LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 600.0)
_OURS = "gpumend_"
_OUR_LABELS = ("fault", "end", "step", "namespace")

Labels = tuple[tuple[str, str], ...]


def metric_buffer() -> MetricBuffer:
    """What the process's Temporal runtime writes to."""
    return MetricBuffer(BUFFER, MetricBufferDurationFormat.SECONDS)


@dataclass(slots=True)
class _Series:
    total: float = 0.0
    counts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Family:
    kind: str
    text: str
    buckets: tuple[float, ...]
    series: dict[Labels, _Series] = field(default_factory=dict)


class TemporalMetrics(Collector):
    """Totals of every update so far; `run` keeps the buffer from filling up between scrapes."""

    def __init__(self, buffer: MetricBuffer) -> None:
        self._buffer = buffer
        self._families: dict[str, _Family] = {}
        self._size = 0
        self._refused = 0
        self._lock = Lock()  # the scrape comes from a thread of its own

    async def run(self) -> None:
        """Drain until cancelled."""
        while True:
            await asyncio.sleep(DRAIN_EVERY)
            with self._lock:
                self._drain()

    def collect(self) -> Iterator[Metric]:
        """Everything as it stands."""
        with self._lock:
            self._drain()
            for name, family in sorted(self._families.items()):
                yield _metric(name, family)
            refused = Metric("gpumend_series_refused", "updates beyond the series kept", "gauge")
            refused.add_sample("gpumend_series_refused", {}, self._refused)
        yield refused

    def _drain(self) -> None:
        try:
            updates = self._buffer.retrieve_updates()
        except RuntimeError:  # no runtime yet: Temporal has not been connected to
            return
        for each in updates:
            self.add(each)

    def add(self, update: BufferedMetricUpdate) -> None:
        """Take one update in."""
        family = self._family(update.metric)
        labels = _labels(update.metric.name, update.attributes)
        series = family.series.get(labels)
        if series is None:
            if self._size >= MOST_SERIES:
                self._refused += 1
                return
            self._size += 1
            series = family.series[labels] = _Series(counts=[0] * (len(family.buckets) + 1))
        if family.kind == "gauge":
            series.total = update.value
            return
        series.total += update.value
        if family.kind == "histogram":
            series.counts[bisect_left(family.buckets, update.value)] += 1

    def _family(self, metric: BufferedMetric) -> _Family:
        name = _name(metric)
        if name not in self._families:
            kind = _kind(metric)
            buckets = BUCKETS if metric.name.startswith(_OURS) else LATENCIES
            text = metric.description or "measured by the Temporal SDK"
            self._families[name] = _Family(kind, text, buckets if kind == "histogram" else ())
        return self._families[name]


def _kind(metric: BufferedMetric) -> str:
    if metric.kind == BUFFERED_METRIC_KIND_COUNTER:
        return "counter"
    return "histogram" if metric.kind == BUFFERED_METRIC_KIND_HISTOGRAM else "gauge"


def _name(metric: BufferedMetric) -> str:
    timed = metric.unit == "s" and not metric.name.endswith("_seconds")
    return f"{metric.name}_seconds" if timed else metric.name


def _labels(name: str, attributes: Mapping[str, object]) -> Labels:
    kept = {key: str(value) for key, value in attributes.items() if key != "service_name"}
    if name.startswith(_OURS):
        kept = {key: value for key, value in kept.items() if key in _OUR_LABELS}
    return tuple(sorted(kept.items()))


def _metric(name: str, family: _Family) -> Metric:
    metric = Metric(name, family.text, family.kind)
    for labels, series in family.series.items():
        named = dict(labels)
        if family.kind == "histogram":
            _add_histogram(metric, named, family, series)
        else:
            suffix = "_total" if family.kind == "counter" else ""
            metric.add_sample(name + suffix, named, series.total)
    return metric


def _add_histogram(
    metric: Metric, labels: dict[str, str], family: _Family, series: _Series
) -> None:
    so_far = 0
    for bound, count in zip((*family.buckets, float("inf")), series.counts, strict=True):
        so_far += count
        le = "+Inf" if bound == float("inf") else str(bound)
        metric.add_sample(f"{metric.name}_bucket", {**labels, "le": le}, so_far)
    metric.add_sample(f"{metric.name}_count", labels, so_far)
    metric.add_sample(f"{metric.name}_sum", labels, series.total)
