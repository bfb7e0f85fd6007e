"""What a worker counts where steps end: durations by outcome, Events lost, messages sent."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram, Metric
from prometheus_client.registry import Collector

from activities.event_writer import EventWriter
from activities.notifier import Notifier
from fleet.figure import BUCKETS, EVENTS_LOST, NOTIFICATIONS, STEP, Figure
from fleet.outcome import Outcome
from fleet.request import StepRequest


class StepFigures:
    """Counts the ends of steps."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._steps = Histogram(
            STEP.name, STEP.text, STEP.labels, buckets=BUCKETS, registry=registry
        )

    def ended(self, request: StepRequest, outcome: Outcome, seconds: float) -> None:
        """One run of a step's activity is over."""
        self._steps.labels(request.step.value, outcome.kind.value).observe(seconds)


class TellingFigures(Collector):
    """How telling people goes, read from who does it."""

    def __init__(self, events: EventWriter, notifier: Notifier | None) -> None:
        self._events = events
        self._notifier = notifier

    def collect(self) -> Iterator[Metric]:
        """As it stands."""
        lost = metric(EVENTS_LOST)
        lost.add_sample(EVENTS_LOST.exposed, {}, self._events.failed)
        yield lost
        if self._notifier:
            sent = metric(NOTIFICATIONS)
            for result, count in (
                ("delivered", self._notifier.delivered),
                ("failed", self._notifier.failed),
            ):
                sent.add_sample(NOTIFICATIONS.exposed, {"result": result}, count)
            yield sent


def metric(figure: Figure) -> Metric:
    """A family with the figure's name and words, still empty."""
    return Metric(figure.name, figure.text, figure.kind.value)
