"""Is this Temporal namespace fit for gpumend? Pure."""

from collections.abc import Iterator, Mapping, Set
from datetime import timedelta

from activities.adapters.temporal_facts import TemporalFacts
from activities.search_attributes import TYPES, register_command
from console.doctor.item import Item, note, ok, unknown, wrong
from fleet.names import pairs_id, sweep_id
from policies.durations import format_duration

SWEEPS, PAIRS = "sweeps", "trials in pairs"
WATCHERS = "kubectl -n gpumend logs -l app=gpumend-watcher  # what=no-sweeps says why"
START_WORKERS = "kubectl -n gpumend get pods -l app=gpumend-worker  # or: gpumend worker"


def judge(
    facts: TemporalFacts, window: timedelta, cluster: str = "", proofs: Set[str] = frozenset()
) -> Iterator[Item]:
    """`window` is how long the policy remembers attempts; `proofs` what it does with idle nodes,
    `SWEEPS` and `PAIRS`.
    """
    yield ok("temporal", f"server {facts.version}")
    name = facts.namespace
    hours = max(1, -(-window // timedelta(hours=1)))
    if facts.retention is None:
        command = f"temporal operator namespace create --namespace {name} --retention {hours}h"
        yield wrong("temporal namespace", f"there is no {name}", command)
        return
    yield _retention(facts, facts.retention, window, hours)
    yield _attributes(facts)
    yield from _pollers(facts.pollers)
    yield _budget(facts)
    yield _schedule(facts, SWEEPS, sweep_id(cluster), proofs)
    yield _schedule(facts, PAIRS, pairs_id(cluster), proofs)
    yield _stuck(facts)


def _retention(facts: TemporalFacts, kept: timedelta, window: timedelta, hours: int) -> Item:
    says = f"{facts.namespace} keeps closed runs for {format_duration(kept)}"
    if kept >= window:
        return ok("temporal namespace", says)
    return wrong(
        "temporal namespace",
        f"{says}; attempts are remembered through them for {format_duration(window)}",
        f"temporal operator namespace update --namespace {facts.namespace} --retention {hours}h",
    )


def _attributes(facts: TemporalFacts) -> Item:
    subject = "search attributes"
    other = [name for name, kind in TYPES.items() if facts.attributes.get(name, kind) != kind]
    if other:
        remedy = f"use another namespace than {facts.namespace}: a type cannot be changed"
        return wrong(subject, f"of another type: {', '.join(other)}", remedy)
    missing = {name: kind for name, kind in TYPES.items() if name not in facts.attributes}
    if not missing:
        return ok(subject, "all registered")
    command = f"{register_command(missing)} --namespace {facts.namespace}"
    return wrong(subject, f"not registered: {', '.join(missing)}", command)


def _pollers(pollers: Mapping[str, int]) -> Iterator[Item]:
    for queue, count in pollers.items():
        if count:
            yield ok(f"queue {queue}", f"{count} pollers")
        else:
            says = "no worker has asked for work within the last minutes"
            yield wrong(f"queue {queue}", says, START_WORKERS)


def _budget(facts: TemporalFacts) -> Item:
    if facts.budget:
        return ok("disruption budget", "runs")
    return note("disruption budget", "has no run yet: the first ask, or census, starts it")


def _schedule(facts: TemporalFacts, subject: str, name: str, wanted: Set[str]) -> Item:
    """The watcher keeps the schedule: none means that none with this policy has come so far."""
    paused = facts.schedules.get(name)
    if subject not in wanted:
        return ok(subject, "none: the policy wants none")
    if paused is None:
        return wrong(subject, f"there is no schedule {name}: no idle node is proven", WATCHERS)
    if not paused:
        return ok(subject, f"schedule {name} is on")
    on = f"temporal schedule toggle --schedule-id {name} --unpause --reason ..."
    return note(subject, f"schedule {name} is paused: {paused}", on)


def _stuck(facts: TemporalFacts) -> Item:
    if facts.stuck is None:
        return unknown("stuck runs", "this server does not say")
    if not facts.stuck:
        return ok("stuck runs", "none")
    query = "TemporalReportedProblems IS NOT NULL"
    return wrong(
        "stuck runs",
        f"{facts.stuck} runs fail their workflow task over and over: a fault of the engine",
        f'temporal workflow list --namespace {facts.namespace} --query "{query}"',
    )
