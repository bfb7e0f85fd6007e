"""Faults that belong to a job, counted by the pod whose process did it.

They move no node and become no condition: they are metrics, and lines of the agent's log. Both name
the pod as its people do, where the kubelet's folders tell its name (`pod_names`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fleet.part import Part
from probes.pod_names import PodName

LIMIT = 256
"""Kinds counted apart; beyond it the one that was seen longest ago goes: all of them together are
counted by code elsewhere, so nothing is lost but whose it was."""
UNKNOWN = PodName("unknown", "unknown")
"""Of a process that nobody can put down to a pod, and of a pod that nobody can name."""


@dataclass(frozen=True, slots=True)
class ApplicationFault:
    """A code (`xid:31`) on a part, by a process of `pod` (its UID; empty: nobody knows whose)."""

    part: Part
    code: str
    pod: str = ""


@dataclass(slots=True)
class Applications:
    """How often there was which, since this agent started or the kind was last let go."""

    _counts: dict[ApplicationFault, int] = field(default_factory=dict)
    _names: dict[str, PodName] = field(default_factory=dict)
    _news: dict[ApplicationFault, int] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[ApplicationFault, int]:
        """At most `LIMIT`, the one that was seen last at the end."""
        return MappingProxyType(self._counts)

    def add(self, part: Part, code: str, pod: str = "", name: PodName | None = None) -> None:
        """One line of the log; a line names one process."""
        fault = ApplicationFault(part, code, pod)
        count = self._counts[fault] = self._counts.pop(fault, 0) + 1
        if pod and name is not None:
            self._names[pod] = name
        if str(count).strip("0") == "1":
            self._news[fault] = count
        if len(self._counts) > LIMIT:
            self._let_go()

    def news(self) -> tuple[tuple[ApplicationFault, int], ...]:
        """What came for the first time, or passed a power of ten, since this was last asked."""
        news, self._news = tuple(self._news.items()), {}
        return news

    def name(self, pod: str) -> PodName:
        """What a pod among the counts is called."""
        return self._names.get(pod, UNKNOWN)

    def by_name(self) -> Mapping[tuple[Part, str, PodName], int]:
        """The counts by part, code and name: a pod that comes back under its name goes on."""
        found: dict[tuple[Part, str, PodName], int] = {}
        for fault, count in self._counts.items():
            key = (fault.part, fault.code, self.name(fault.pod))
            found[key] = found.get(key, 0) + count
        return found

    def _let_go(self) -> None:
        oldest = next(iter(self._counts))
        del self._counts[oldest]
        if oldest.pod and not any(each.pod == oldest.pod for each in self._counts):
            self._names.pop(oldest.pod, None)
