"""How long people wanted nothing done: time in which nobody can be late with an answer.

While an incident is paused its questions are not shown and take no answer, so their clocks stand
still; what a person began with a pause must not end as a no of everybody else.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from fleet.order import Verb
from fleet.sighting import Span
from policies.scene import Scene


def stood_still(scene: Scene, since: datetime) -> timedelta:
    """For how long, from a moment until now, the incident was paused by order or annotation."""
    total, counted = timedelta(0), since
    for span in sorted(_spans(scene), key=lambda each: each.started):
        begins = max(span.started, counted)
        if span.ended > begins:
            total += span.ended - begins
            counted = span.ended
    return total


def _spans(scene: Scene) -> Iterator[Span]:
    """Every pause, also one that lasts; they may overlap."""
    yield from scene.incident.annotations
    if scene.incident.annotated:
        yield Span(scene.incident.annotated, scene.now)
    paused: datetime | None = None
    for each in scene.incident.orders:
        if each.verb is Verb.PAUSE:
            paused = paused or each.at
        elif each.verb is Verb.RESUME and paused:
            yield Span(paused, each.at)
            paused = None
    if paused:
        yield Span(paused, scene.now)
