"""The watcher's own numbers, for Prometheus: what it holds and does not, and how it keeps up.

Read from the rooms of the term that leads; a follower has none. A scrape has a thread of its own,
so what is read here is copied first.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from fleet.figure import (
    BREAKER_PHASE,
    CENSUS_TOLD,
    HOLD_DELAY,
    NOT_HELD,
    WATCHER_QUEUE,
    WATCHER_TROUBLES,
    WATCHER_WRITES,
    Figure,
)
from intake.term import Term

Samples = Iterable[tuple[dict[str, str], float]]


class WatcherFigures(Collector):
    """`term` answers None in a watcher that does not lead."""

    def __init__(self, term: Callable[[], Term | None]) -> None:
        self._term = term

    def collect(self) -> Iterator[Metric]:
        """As it stands."""
        term = self._term()
        if term is None:
            return
        writes = dict(term.writer.counts.done)
        yield _shown(WATCHER_WRITES, [({"act": act.value}, n) for act, n in writes.items()])
        yield _delays(term)
        refusals = Counter(list(term.knowledge.refusals.values()))
        yield _shown(NOT_HELD, [({"reason": each}, n) for each, n in refusals.items()])
        queues = {"writes": len(term.writes), "deliveries": term.delivery.waiting}
        yield _shown(WATCHER_QUEUE, [({"queue": each}, n) for each, n in queues.items()])
        circuits = dict(term.breaker.circuits)
        phases = Counter((each.scope, each.phase.value) for each in circuits.values())
        yield _shown(
            BREAKER_PHASE,
            [({"scope": scope, "phase": phase}, n) for (scope, phase), n in phases.items()],
        )
        if (age := term.census.age) is not None:
            yield _shown(CENSUS_TOLD, [({}, age)])
        yield _shown(WATCHER_TROUBLES, _troubles(term))


def _troubles(term: Term) -> Samples:
    for what, counts in (("nodes", term.nodes.counts), ("leases", term.leases.counts)):
        yield {"what": f"watch-{what}-failed"}, counts.failures
        yield {"what": f"watch-{what}-expired"}, counts.expired
        yield {"what": f"watch-{what}-idle"}, counts.idle
    yield {"what": "node-write"}, term.writer.counts.failures
    yield {"what": "delivery"}, term.delivery.counts.failures
    yield {"what": "census"}, term.census.failures
    yield {"what": "prove"}, term.prover.counts.failures


def _delays(term: Term) -> Metric:
    delays = term.writer.counts.delays
    family = HistogramMetricFamily(HOLD_DELAY.name, HOLD_DELAY.text)
    family.add_metric([], delays.cumulative(), delays.total)
    return family


def _shown(figure: Figure, samples: Samples) -> Metric:
    metric = Metric(figure.name, figure.text, figure.kind.value)
    for labels, value in samples:
        metric.add_sample(figure.exposed, labels, float(value))
    return metric
