"""What the engine measures, as a scrape reads it."""

import urllib.request
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from temporalio.runtime import (
    BUFFERED_METRIC_KIND_COUNTER,
    BUFFERED_METRIC_KIND_GAUGE,
    BUFFERED_METRIC_KIND_HISTOGRAM,
)

from activities.adapters import temporal_metrics
from activities.adapters.exposition import CannotServe, serving
from activities.adapters.temporal_metrics import TemporalMetrics, metric_buffer
from activities.standing import STALE_AFTER, Standing
from activities.step_figures import StepFigures
from fleet.errors import Transient
from fleet.figure import ENDED, FIGURES, OPENED, REACHED, STEP
from fleet.mark import UNDO_CORDON
from fleet.outcome import Outcome, OutcomeKind
from fleet.step import Step
from intake.availability import AvailabilityFigures, availability_of
from policies.ledger_view import LedgerView, ScopeRow
from tests.cluster import HOLD, identity, mark, request_for, seen_node


def samples(*collectors):
    registry = CollectorRegistry()
    for each in collectors:
        registry.register(each)
    return read(registry)


def read(registry):
    text = generate_latest(registry).decode()
    return {
        (each.name, *sorted(each.labels.items())): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


@dataclass
class Measured:
    name: str
    kind: int
    unit: str | None = None
    description: str | None = "words"


@dataclass
class Update:
    metric: Measured
    value: float
    attributes: dict[str, str | int | float | bool] = field(default_factory=dict)


def update(metric, value, attributes):
    return Update(metric, value, attributes)


def test_updates_of_the_sdk_become_totals_levels_and_buckets():
    measured = TemporalMetrics(metric_buffer())
    polls = Measured("temporal_polls", BUFFERED_METRIC_KIND_COUNTER)
    slots = Measured("temporal_slots", BUFFERED_METRIC_KIND_GAUGE)
    latency = Measured("temporal_request_latency", BUFFERED_METRIC_KIND_HISTOGRAM, "s")
    queue = {"task_queue": "q", "service_name": "x"}
    for metric, values in ((polls, (1, 1)), (slots, (7, 3)), (latency, (0.02, 0.02, 90.0))):
        for value in values:
            measured.add(update(metric, value, queue))
    found = samples(measured)
    label = ("task_queue", "q")
    assert found["temporal_polls_total", label] == 2
    assert found["temporal_slots", label] == 3
    name = "temporal_request_latency_seconds"
    assert found[f"{name}_bucket", ("le", "0.025"), label] == 2
    assert found[f"{name}_bucket", ("le", "+Inf"), label] == 3
    assert found[f"{name}_count", label] == 3
    assert found[f"{name}_sum", label] == pytest.approx(90.04)


def test_what_workflows_count_keeps_its_own_labels_and_no_other():
    measured = TemporalMetrics(metric_buffer())
    ended = Measured(ENDED.name, BUFFERED_METRIC_KIND_COUNTER)
    about = {
        "fault": "thermal",
        "end": "repaired",
        "workflow_type": "node-remediation",
        "task_queue": "gpumend",
    }
    measured.add(update(ended, 1, about))
    found = samples(measured)
    assert found[ENDED.exposed, ("end", "repaired"), ("fault", "thermal")] == 1


def test_the_series_kept_are_bounded_and_the_rest_is_said(monkeypatch):
    monkeypatch.setattr(temporal_metrics, "MOST_SERIES", 10)
    measured = TemporalMetrics(metric_buffer())
    for n in range(15):
        measured.add(update(Measured("temporal_x", BUFFERED_METRIC_KIND_COUNTER), 1, {"n": n}))
    found = samples(measured)
    assert len([key for key in found if key[0] == "temporal_x_total"]) == 10
    assert found["gpumend_series_refused",] == 5


def test_a_step_is_counted_by_how_it_ended():
    registry = CollectorRegistry()
    figures = StepFigures(registry)
    figures.ended(request_for(identity(), Step.DRAIN), Outcome(OutcomeKind.PERMANENT), 70.0)
    labels = (("outcome", "permanent"), ("step", "drain"))
    found = read(registry)
    assert found[f"{STEP.name}_count", *labels] == 1
    assert found[f"{STEP.name}_bucket", ("le", "120.0"), *labels] == 1
    assert found[f"{STEP.name}_bucket", ("le", "60.0"), *labels] == 0


NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LEDGER = LedgerView(
    at=NOW,
    leased=1,
    waiting=4,
    handed_off=3,
    unanswered=2,
    stopped="ada froze it",
    freeze=None,
    census_at=NOW,
    census_age=timedelta(seconds=30),
    scopes=(
        ScopeRow("rack/r7", 1, 8, leased=1, down=2, handed_off=0, waiting=4, barred="too many"),
        ScopeRow("cluster/c", None, 64, leased=1, down=2, handed_off=3, waiting=4),
    ),
    leases=(),
    queue=(),
    with_people=(),
)


class Source:
    def __init__(self):
        self.problem = None
        self.at = 0.0

    async def incidents(self):
        if self.problem:
            raise self.problem
        return Counter({"ask": 2, "drain": 1})

    async def ledger(self):
        return LEDGER


async def test_the_standing_of_the_fleet_is_shown_as_temporal_has_it():
    source = Source()
    standing = Standing(source.incidents, source.ledger, lambda: source.at)
    assert samples(standing) == {}
    await standing.read()
    found = samples(standing)
    assert found["gpumend_incidents_open", ("step", "ask")] == 2
    assert found["gpumend_leases", ("scope", "rack/r7"), ("state", "waiting")] == 4
    assert found["gpumend_lease_limit", ("scope", "rack/r7")] == 1
    assert ("gpumend_lease_limit", ("scope", "cluster/c")) not in found
    assert found["gpumend_breaker_open", ("scope", "rack/r7")] == 1
    assert found["gpumend_breaker_open", ("scope", "cluster/c")] == 0
    assert found["gpumend_lease_asks_unanswered",] == 2
    assert found["gpumend_grants_stopped",] == 1
    assert found["gpumend_census_age_seconds",] == 30


async def test_figures_that_cannot_be_read_any_more_go_away_and_say_how_old_they_are():
    source = Source()
    standing = Standing(source.incidents, source.ledger, lambda: source.at)
    await standing.read()
    source.problem, source.at = Transient("away"), STALE_AFTER + 1
    await standing.read()
    assert samples(standing) == {("gpumend_figures_age_seconds",): STALE_AFTER + 1}


def node(name, **about):
    about.setdefault("marked", None)
    about.setdefault("taints", [])
    seen = seen_node(name=name, provider_id=f"cloud:///{name}", **about)[1]
    return replace(seen, identity=replace(seen.identity, name=name))


BROKEN = node("broken", taints=[HOLD])
CORDON_HELD = node("cordon", marked=mark(undo=(UNDO_CORDON,), uid="u1"), unschedulable=True)


@pytest.mark.parametrize(
    ("nodes", "serving", "machines"),
    [
        ([node("a"), node("b")], 1.0, 1.0),
        ([node("a"), BROKEN], 0.5, 0.5),
        ([node("a"), node("b", ready="Unknown")], 0.5, 1.0),
        ([node("a"), node("b", unschedulable=True)], 0.5, 1.0),
        ([node("a"), node("b", taints=[{**HOLD, "value": "monitor-silent"}])], 0.5, 1.0),
        ([node("a"), node("b", taints=[{**HOLD, "value": "config-mismatch"}])], 0.5, 1.0),
        ([node("a"), CORDON_HELD], 0.5, 0.5),
        ([BROKEN, BROKEN], 0.0, 0.0),
        ([], None, None),
    ],
)
def test_availability_has_two_readings(nodes, serving, machines):
    found = availability_of(nodes)
    assert (found.serving, found.by_machine) == (serving, machines)


def test_two_nodes_of_one_machine_are_one_machine():
    found = availability_of([node("a"), BROKEN, BROKEN])
    assert (found.machines, found.out) == (2, 1)


def test_only_the_watcher_that_leads_shows_the_fleet():
    assert samples(AvailabilityFigures(lambda: None)) == {("gpumend_watcher_leading",): 0}
    found = samples(AvailabilityFigures(lambda: [node("a"), BROKEN]))
    assert found["gpumend_watcher_leading",] == 1
    assert found["gpumend_nodes", ("state", "held")] == 1
    assert found["gpumend_machines_out",] == 1
    assert found["gpumend_node_availability_ratio", ("reading", "serving")] == 0.5


def test_metrics_are_served_where_asked_and_nowhere_else():
    registry = CollectorRegistry()
    with serving(None, registry) as nowhere:
        assert nowhere is None
    with serving(("127.0.0.1", 0), registry) as port:
        assert port
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            assert answer.status == 200
        taken = serving(("127.0.0.1", port), registry)
        with pytest.raises(CannotServe, match=f"127.0.0.1:{port}"), taken:
            pass


def test_no_label_can_name_a_node_or_an_incident():
    labels = {label for each in FIGURES for label in each.labels}
    of_incidents = {"fault", "end", "step", "outcome", "result", "scope", "state", "reading"}
    of_the_watcher = {"act", "reason", "queue", "phase", "what"}
    assert labels == of_incidents | of_the_watcher
    assert len({each.name for each in FIGURES}) == len(FIGURES)
    assert {OPENED, REACHED} <= set(FIGURES)
