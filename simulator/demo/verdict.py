"""Compares a script with what the observer saw: how far it is, and what ended otherwise."""

from collections.abc import Mapping, Sequence

from simulator.demo.scenario import Scenario, Trouble
from simulator.observer import sight
from simulator.observer.incidents import Incident


def unfinished(
    scenario: Scenario, incidents: Sequence[Incident], unseen: bool = False
) -> list[str]:
    """Nodes whose incident has not ended, or has not even been opened although it must be.

    `unseen`: a fault that passes by itself may have passed before anybody could be told.
    """
    known = {each.node for each in incidents}
    running = {each.node for each in incidents if not each.end}
    awaited = {each.node for each in scenario.troubles if _must_open(each, unseen)}
    return sorted(running | (awaited - known))


def unproven(nodes: Mapping[str, sight.Json]) -> list[str]:
    """Nodes that wait for a proof; where an incident has one, it is that which is waited for."""
    return sorted(
        name
        for name, node in nodes.items()
        if sight.unproven(node) is not None and sight.mark(node) is None
    )


def differences(
    scenario: Scenario, incidents: Sequence[Incident], unseen: bool = False
) -> list[str]:
    """Every way in which the run did not go as scripted, in words; `unseen` as above."""
    scripted = {each.node: each for each in scenario.troubles}
    incidents = [each for each in incidents if not _blinked(each)]
    found = [
        f"{node}: {len(those)} incidents"
        for node in scenario.nodes
        if len(those := [each for each in incidents if each.node == node]) > 1
    ]
    for trouble in scenario.troubles:
        those = [each for each in incidents if each.node == trouble.node]
        if those or _must_open(trouble, unseen):
            found += _difference(trouble, those)
    strangers = [each for each in incidents if each.node not in scripted]
    return found + [f"{each.node}: an incident ({each.fault}) of nothing" for each in strangers]


def _blinked(incident: Incident) -> bool:
    """A kubelet was late, or just born: held for a moment, and nothing was done about it."""
    silent = incident.fault == "host-unreachable"
    return silent and incident.end == "recovered" and not incident.steps


def _must_open(trouble: Trouble, unseen: bool) -> bool:
    if trouble.end is None or trouble.maybe:
        return False
    return not (unseen and trouble.passes)


def _difference(trouble: Trouble, incidents: Sequence[Incident]) -> list[str]:
    head = f"{trouble.node} ({trouble.kind}) should have ended as {trouble.expected}"
    if trouble.end is None:
        return [f"{head}, and was held for {each.fault}" for each in incidents]
    if not incidents:
        return [f"{head}, and had no incident"]
    last = incidents[-1]
    if (last.end, last.steps) == (trouble.end, trouble.steps):
        return []
    way = " and ".join(last.steps) or "nothing"
    return [f"{head}, and ended as {last.end or 'nothing yet'} by {way}"]
