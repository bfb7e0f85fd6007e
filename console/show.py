"""`gpumend show NODE`: why a node is held, what comes next, and how it came to that.

Two witnesses: the run's history and its query `plan`, and the Node with what lies beside it. Either
may be away; then the other tells what it knows, and the command says what is missing.
Exit status: 0 shown, 2 there is no such node, 3 one of the two servers is away.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_jsonable_python

from activities.adapters.temporal_history import Decided, Told
from activities.adapters.temporal_reading import Run, TemporalReading
from console import exits, servers
from console.decision_words import comes, why
from console.node_facts import NodeFacts, facts_of
from console.servers import Away
from console.table import clock, length
from console.timeline import Entry, fault_words, timeline
from console.which import manifest_of, node_name, nothing_open, plain, runs_of
from fleet.closing import Closing
from fleet.decision import Decision
from fleet.errors import NotFound, Refused, Transient
from fleet.names import QUERY_PLAN, prove_workflow_id
from fleet.ports import Json, Kubernetes
from fleet.proof import Why
from workflows.node_remediation import Plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("node", type=node_name, metavar="NODE")
    parser.add_argument("--cluster", type=plain, default=servers.default_cluster())
    parser.add_argument("--json", action="store_true", help="print JSON, only that")


def run(arguments: argparse.Namespace) -> int:
    """Show it."""
    return servers.run("show", lambda: _run(arguments))


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is known of one node. `decision` is what comes next by `plan` or, where no
    worker answered, the last one on record; `away` says what could not be asked."""

    node: str
    cluster: str
    now: datetime
    facts: NodeFacts | None = None
    run: Run | None = None
    earlier: tuple[tuple[Run, Closing | None], ...] = ()
    decision: Decision | None = None
    observed: datetime | None = None
    answers: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    away: tuple[str, ...] = ()


async def _run(arguments: argparse.Namespace) -> int:
    async with servers.kubernetes() as kubernetes:
        view = await look(arguments.node, arguments.cluster, kubernetes)
    if view.facts is None and view.run is None and not view.away:
        raise NotFound(0, "none", "there is no such node")
    print(json.dumps(as_json(view)) if arguments.json else "\n".join(as_text(view)))
    for each in view.away:
        print(f"gpumend show: {each}", file=sys.stderr)
    return exits.UNREACHABLE if view.away else exits.OK


async def look(node: str, cluster: str, kubernetes: Kubernetes | Away) -> View:
    """Ask both servers."""
    view = View(node, cluster, datetime.now(UTC))
    manifest = await manifest_of(kubernetes, node)
    if isinstance(manifest, Away):
        view = replace(view, away=(str(manifest),))
    elif manifest is not None and not isinstance(kubernetes, Away):
        view = replace(view, facts=await facts_of(kubernetes, manifest, cluster))
    reading = await servers.temporal()
    if isinstance(reading, Away):
        view = replace(view, away=(*view.away, str(reading)))
        return replace(view, entries=timeline((), view.facts))
    try:
        return await _with_run(view, reading, kubernetes, manifest)
    except Transient as problem:
        away = f"Temporal is away: {problem}"
        return replace(view, away=(*view.away, away), entries=timeline((), view.facts))


async def _with_run(
    view: View,
    reading: TemporalReading,
    kubernetes: Kubernetes | Away,
    manifest: Json | Away | None,
) -> View:
    machine = view.facts.state.identity.machine if view.facts else None
    runs = await runs_of(reading, view.cluster, view.node, machine)
    if not runs:
        if view.facts is None and not view.away:
            words = await nothing_open(kubernetes, manifest, view.cluster, view.node)
            raise NotFound(0, "none", words)
        return replace(view, entries=timeline((), view.facts))
    newest = runs[0]
    earlier = tuple([(each, await reading.closing(each)) for each in runs[1:]])
    told = await reading.history(newest)
    view = replace(view, run=newest, earlier=earlier, entries=timeline(told, view.facts))
    return await _with_plan(view, reading, told)


async def _with_plan(view: View, reading: TemporalReading, told: Sequence[Told]) -> View:
    if view.run is None or not view.run.open:
        return view
    try:
        plan = await reading.ask(view.run.workflow_id, QUERY_PLAN, Plan, datetime.now(UTC))
    except (Transient, Refused) as problem:
        decided = [each.decision for each in told if isinstance(each, Decided)]
        words = f"no worker answered ({problem}); what comes next is by the last decision on record"
        last = decided[-1] if decided else None
        return replace(view, decision=last, away=(*view.away, words))
    return replace(view, decision=plan.next, observed=plan.facts_observed, answers=plan.answers)


def as_text(view: View) -> Iterator[str]:
    """For people."""
    yield from _head(view)
    yield from _now(view)
    yield ""
    for entry in view.entries:
        yield from _lines(entry)
    if view.earlier:
        yield ""
        yield "Earlier incidents"
        for run, closing in view.earlier:
            end = closing.end if closing else run.status
            yield f"  {clock(run.opened)}  {end}  {run.workflow_id} {run.run_id}"


def _head(view: View) -> Iterator[str]:
    facts, run = view.facts, view.run
    known = run.attributes.get("Machine") if run else None
    machine = facts.state.identity.machine if facts else known
    yield f"{view.node} (cluster {view.cluster}" + (f", machine {machine})" if machine else ")")
    if facts:
        yield from _cluster_says(facts, view.now)
    if run:
        state = "open" if run.open else run.status
        yield f"  incident   {run.workflow_id} ({state}), run {run.run_id}"
    elif not view.away:
        yield "  incident   none"


IS_UNPROVEN = {
    Why.JOINED: "it carries the startup taint",
    Why.SWEEP: "it was idle, and is being looked at",
    Why.FOUND: "a look at it found a fault",
    Why.PAIRS: "it was idle, and is tried with others",
    Why.ODD: "it did badly with several others; the next trial in pairs tells if it is well",
}


def _cluster_says(facts: NodeFacts, now: datetime) -> Iterator[str]:
    state = facts.state
    if state.hold:
        since = f", since {clock(facts.held_at)} UTC" if facts.held_at else ""
        yield f"  held       for {state.hold.value}{since}"
    else:
        yield "  held       no"
    if state.unproven:
        run = prove_workflow_id(state.identity.cluster, state.identity.name, state.identity.machine)
        yield f"  unproven   {IS_UNPROVEN[Why.of(state.unproven.value)]}; see run {run}"
    if state.mark:
        yield f"  mark       {state.mark.id}, {state.mark.state}"
    for text in filter(None, (state.mark_problem, facts.opening and f"asked: {facts.opening}")):
        yield f"  note       {text}"
    if state.pause is not None:
        yield f"  paused     by annotation: {state.pause}"
    if not state.managed:
        yield "  opted out  by label: gpumend leaves this node alone"
    yield f"  kubelet    Ready={state.ready}" + (", cordoned" if state.unschedulable else "")
    agent = f"heard of {length(now - facts.heard)} ago" if facts.heard else "never heard of"
    yield f"  agent      {agent}"
    for fault in facts.faults:
        yield f"  fault      {fault_words(fault)}"
        if fault.pods:
            hit = (facts.pods.get(uid, f"pod {uid}") for uid in fault.pods)
            yield f"  {'':<10} it hit {', '.join(hit)}"
    for text in facts.unknown:
        yield f"  unknown    {text}"


def _now(view: View) -> Iterator[str]:
    if view.decision is None:
        return
    yield f"  next       {comes(view.decision)}"
    for reason in why(view.decision):
        yield f"             - {reason}"
    for n, each in enumerate(view.decision.basis.outlook):
        yield f"  {'' if n else 'then':<10} {each}"
    for n, each in enumerate(view.answers):
        yield f"  {'' if n else 'answer':<10} {each.replace('`', '')}"
    if view.observed:
        old = length(view.now - view.observed)
        yield f"  facts      as of {clock(view.observed)} UTC, {old} ago"


def _lines(entry: Entry) -> Iterator[str]:
    last = f" ({entry.times} times, last {clock(entry.last)})" if entry.last else ""
    yield f"{clock(entry.at)}  {entry.what:<10} {entry.text}{last}"
    for reason in entry.reasons:
        yield f"{'':21}{'':11}- {reason}"


def as_json(view: View) -> dict[str, Any]:
    """For programs."""
    facts = view.facts
    answer: dict[str, Any] = to_jsonable_python(
        {
            "node": view.node,
            "cluster": view.cluster,
            "at": view.now,
            "kubernetes": _facts_json(facts) if facts else None,
            "incident": asdict(view.run) if view.run else None,
            "comes": view.decision,
            "blocks": why(view.decision) if view.decision else None,
            "plan": view.decision.basis.outlook if view.decision else None,
            "answers": view.answers,
            "facts_observed": view.observed,
            "timeline": [
                {key: value for key, value in asdict(each).items() if key != "like"}
                for each in view.entries
            ],
            "earlier": [
                {"run": asdict(run), "end": closing.end if closing else None}
                for run, closing in view.earlier
            ],
            "away": view.away,
        }
    )
    return answer


def _facts_json(facts: NodeFacts) -> dict[str, Any]:
    state = facts.state
    return {
        "machine": state.identity.machine,
        "uid": state.identity.uid,
        "boot_id": state.boot_id,
        "ready": state.ready,
        "unschedulable": state.unschedulable,
        "managed": state.managed,
        "pause": state.pause,
        "hold": state.hold.value if state.hold else None,
        "held_at": facts.held_at,
        "unproven": state.unproven.value if state.unproven else None,
        "proof": state.proof,
        "mark": state.mark,
        "faults": facts.faults,
        "unknown": facts.unknown,
        "pods": facts.pods,
        "agent_heard": facts.heard,
    }
