"""Faults that belong to a job, counted by the pod whose process did it.

They move no node and become no condition: they are metrics, and lines of the agent's log.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fleet.part import HOST, Part

LIMIT = 256
"""Kinds counted apart; of further ones it is not said whose they are, then not where either."""
OTHER = "more"


@dataclass(frozen=True, slots=True)
class ApplicationFault:
    """A code (`xid:31`) on a part, by a process of `pod` (empty: nobody can tell whose)."""

    part: Part
    code: str
    pod: str = ""


@dataclass(slots=True)
class Applications:
    """How often there was which, since this agent started. Counts only rise."""

    _counts: dict[ApplicationFault, int] = field(default_factory=dict)
    _news: dict[ApplicationFault, int] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[ApplicationFault, int]:
        """All of them: at most `LIMIT`, and a few without a pod."""
        return MappingProxyType(self._counts)

    def add(self, part: Part, code: str, pods: tuple[str, ...]) -> None:
        """One line of the log; a line names one process."""
        fault = self._known(ApplicationFault(part, code, pods[0] if pods else ""))
        count = self._counts[fault] = self._counts.get(fault, 0) + 1
        if str(count).strip("0") == "1":
            self._news[fault] = count

    def news(self) -> tuple[tuple[ApplicationFault, int], ...]:
        """What came for the first time, or passed a power of ten, since this was last asked."""
        news, self._news = tuple(self._news.items()), {}
        return news

    def _known(self, fault: ApplicationFault) -> ApplicationFault:
        for each in (fault, ApplicationFault(fault.part, fault.code)):
            if each in self._counts or len(self._counts) < LIMIT:
                return each
        return ApplicationFault(HOST, OTHER)
