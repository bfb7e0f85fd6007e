"""What may arrive at an open incident, from the watcher, the budget and people.

Each is a fact with its time of arrival by the engine's clock. None of them acts: it is added to
the incident, and `decide` says what follows.
"""

from dataclasses import dataclass
from datetime import datetime

from fleet.order import Order
from fleet.report import Report


@dataclass(frozen=True, slots=True)
class Reported:
    """A complete report of the node."""

    report: Report
    at: datetime


@dataclass(frozen=True, slots=True)
class NodeGone:
    """The Node object with this UID was deleted; the same machine may come back under another.

    The UID is empty where its deletion was missed: then this incident's machine has no Node now.
    """

    uid: str
    at: datetime

    def concerns(self, uid: str) -> bool:
        """Whether the Node object with this UID is gone."""
        return self.uid in ("", uid)


@dataclass(frozen=True, slots=True)
class HoldRemoved:
    """Somebody else took our taint away, and with `mark_removed` our mark, too."""

    uid: str
    mark_removed: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Granted:
    """The budget grants the lease that was asked for."""

    at: datetime


Message = Reported | NodeGone | HoldRemoved | Granted | Order
