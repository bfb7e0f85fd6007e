"""Dry run: a node with faults that the policy only rehearses is not touched, but its incident runs.

There is no mark to remember it by. What is open is known from what this leader has started and, for
what an earlier one started, from the list of open incidents.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.fault import Fault
from fleet.node import NodeState
from fleet.opening import Opening
from fleet.report import Report
from intake.admission import new_mark, off_limits
from intake.delivery import Parcel, worse
from intake.settings import Settings


@dataclass(frozen=True, slots=True)
class Told:
    """What a node's rehearsal heard last; `at` is None where an earlier leader told it."""

    opening: Opening
    report: Report | None = None
    at: datetime | None = None


class Rehearsals:
    """Bounded by the number of nodes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._told: dict[str, Told] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._told

    def parcel(
        self,
        node: NodeState,
        report: Report,
        rehearsed: Fault | None,
        scopes: Mapping[str, str],
        now: datetime,
    ) -> Parcel | None:
        """What its rehearsal has to hear now, if anything.

        One is opened where a rehearsed fault stands; one that is open hears what changes, that
        the node is clean above all.
        """
        told = self._told.get(node.identity.name)
        starts = rehearsed is not None and off_limits(node, now) is None
        if told is None:
            return Parcel(self._opening(node, scopes, now), report, starts) if starts else None
        return Parcel(told.opening, report, starts) if self._is_news(told, report, now) else None

    def told(self, name: str, parcel: Parcel, is_open: bool, now: datetime) -> None:
        """The rehearsal has heard it; one that is closed hears nothing more."""
        if is_open:
            self._told[name] = Told(parcel.opening, parcel.report, now)
        else:
            self.forget(name)

    def listed(self, node: NodeState, scopes: Mapping[str, str], now: datetime) -> None:
        """This node's rehearsal is open, and perhaps an earlier leader opened it."""
        opening = self._opening(node, scopes, now)
        self._told.setdefault(node.identity.name, Told(opening))

    def forget(self, name: str) -> None:
        """The Node object or its rehearsal is gone."""
        self._told.pop(name, None)

    def _opening(self, node: NodeState, scopes: Mapping[str, str], now: datetime) -> Opening:
        return Opening(node.identity, new_mark(node, now), scopes, dry=True)

    def _is_news(self, told: Told, report: Report, now: datetime) -> bool:
        if told.report is None or told.at is None or worse(told.report, report):
            return True
        changed = told.report.fingerprint != report.fingerprint
        return changed and now - told.at >= self._settings.report_at_most_every
