"""A node's conditions, ours and others', as one Report.

What others say is translated by the policy's signals, `Ready` by what is written here. First sight
is the caller's clock: others' transition times start again with every word that they change.
"""

from dataclasses import replace
from datetime import datetime

from fleet.fault import Advice, Fault, FaultName
from fleet.node import Condition, NodeState
from fleet.open_request import CODE
from fleet.part import HOST
from fleet.report import Report
from policies.own_conditions import Said, is_own, read_own
from policies.schema import Policy
from policies.scopes import CLUSTER, keys_of

READY = "Ready"


def read_report(
    node: NodeState,
    policy: Policy,
    now: datetime,
    agent_silent: bool,
    before: Report | None = None,
    stale_before: datetime | None = None,
) -> Report:
    """Everything that is wrong with a node, as its conditions say at `now`. Never raises.

    `before` is the last Report of this Node object: what was in it keeps its first sight.
    `stale_before` is the end of our last step: a fault that others wrote and have not renewed since
    proves nothing about what came after, and is unknown.
    """
    own = read_own(node, now)
    foreign = _read_foreign(node, policy, now, stale_before)
    silent = _silence(now) if agent_silent else Said()
    found = _found_by_a_person(node, now)
    known = before.faults if before and before.node.uid == node.identity.uid else ()
    said = (own, foreign, silent, found)
    return Report(
        node=node.identity,
        boot_id=node.boot_id,
        faults=_settled([fault for each in said for fault in each.faults], known, now),
        unknown=tuple(dict.fromkeys(reason for each in said for reason in each.unknown)),
        observed=now,
        witness=own.spoke and not agent_silent,
        managed=node.managed,
        pause=None if node.pause is None else node.pause[:MOST_WORDS],
    )


MOST_WORDS = 200
"""Characters of a pause annotation that go on."""


def scopes_of(node: NodeState, policy: Policy) -> dict[str, str]:
    """The node's key in each scope that the policy may count in: cluster, and what labels name."""
    keys = keys_of(node.labels, policy.scopes, policy.label_scopes)
    return {CLUSTER: node.identity.cluster, **keys}


def _read_foreign(
    node: NodeState, policy: Policy, now: datetime, stale_before: datetime | None
) -> Said:
    listed = {each.type for each in policy.signals}
    faults: list[Fault] = []
    unknown: list[str] = []
    if not any(each.type == READY for each in node.conditions):
        unknown.append(f"{READY}: is absent")
    for condition in node.conditions:
        if is_own(condition):
            continue
        name = _meaning(condition, policy)
        if name and _stale(condition, stale_before):
            unknown.append(f"{condition.type}: not renewed since our last step")
        elif name:
            faults.append(_fault(name, f"condition:{condition.type}={condition.status}", now))
        elif condition.type in listed and condition.status == "Unknown":
            unknown.append(f"{condition.type}: is Unknown")
    return Said(tuple(faults), tuple(unknown))


def _meaning(condition: Condition, policy: Policy) -> FaultName | None:
    if condition.type == READY:
        return None if condition.status == "True" else FaultName.HOST_UNREACHABLE
    signals = (
        each.fault
        for each in policy.signals
        if each.matches(condition.type, condition.status, condition.reason)
    )
    return next(signals, None)


def _stale(condition: Condition, stale_before: datetime | None) -> bool:
    if stale_before is None or condition.type == READY:
        return False  # the control plane itself sets Ready to Unknown when it is not renewed
    return condition.heartbeat is None or condition.heartbeat < stale_before


def _silence(now: datetime) -> Said:
    fault = _fault(FaultName.MONITOR_SILENT, "agent:silent", now)
    return Said(faults=(fault,), unknown=("agent: is silent",))


def _found_by_a_person(node: NodeState, now: datetime) -> Said:
    request = node.open_request
    return Said(faults=(_fault(request.fault, CODE, now),)) if request else Said()


def _fault(name: FaultName, code: str, now: datetime) -> Fault:
    return Fault(HOST, name, code, Advice.NONE, count=1, since=now)


def _settled(faults: list[Fault], known: tuple[Fault, ...], now: datetime) -> tuple[Fault, ...]:
    """Each fault once, with its first sight: what we date ourselves takes it from before."""
    first_sight = {each.key: each.since for each in known}
    settled: dict[str, Fault] = {}
    for fault in faults:
        since = min(first_sight.get(fault.key, now), now) if fault.since == now else fault.since
        same = settled.get(fault.key)
        if same is None or since < same.since:
            settled[fault.key] = replace(same or fault, since=since)
    return tuple(settled[key] for key in sorted(settled))
