"""Compares a script with what the observer saw: how far it is, and what ended otherwise."""

from collections.abc import Sequence

from simulator.demo.scenario import Scenario, Strike
from simulator.observer.incidents import Incident


def open_strikes(scenario: Scenario, incidents: Sequence[Incident]) -> list[Strike]:
    """Strikes whose incident has not ended yet, or has not even been opened."""
    ended = {each.node for each in incidents if each.end}
    awaited = (each for each in scenario.strikes if each.end is not None)
    return [each for each in awaited if each.node not in ended]


def differences(scenario: Scenario, incidents: Sequence[Incident]) -> list[str]:
    """Every way in which the run did not go as scripted, in words."""
    scripted = {each.node: each for each in scenario.strikes}
    found = [
        f"{node}: {len(those)} incidents"
        for node in scenario.nodes
        if len(those := [each for each in incidents if each.node == node]) > 1
    ]
    for strike in scenario.strikes:
        found += _difference(strike, [each for each in incidents if each.node == strike.node])
    strangers = [each for each in incidents if each.node not in scripted]
    return found + [f"{each.node}: an incident ({each.fault}) of nothing" for each in strangers]


def _difference(strike: Strike, incidents: Sequence[Incident]) -> list[str]:
    head = f"{strike.node} ({strike.nature.name}) should have ended as {strike.expected}"
    if strike.end is None:
        return [f"{head}, and was held for {each.fault}" for each in incidents]
    if not incidents:
        return [f"{head}, and had no incident"]
    last = incidents[-1]
    if (last.end, last.steps) == (strike.end, strike.steps):
        return []
    way = " and ".join(last.steps) or "nothing"
    return [f"{head}, and ended as {last.end or 'nothing yet'} by {way}"]
