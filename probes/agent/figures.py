"""What the agent counts, and how a scrape reads it: the text format of Prometheus, and no library.

`prometheus-client` would be 6 MiB of the agent's 40 (docs/decisions/0023). What is counted and why
stands in `fleet/agent_figure.py`; who may read it, in `exposition`.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleet.agent_figure import AGENT_FIGURES, CHILDREN_CPU, REFUSED_SERIES, ROUND_AGE
from fleet.figure import Figure, FigureKind

SERIES_LIMIT = 2_000
"""Series kept of all figures together; a node with every part broken has some hundreds."""
_PROCESS = (
    ("process_resident_memory_bytes", FigureKind.GAUGE, "Resident memory size in bytes."),
    ("process_cpu_seconds", FigureKind.COUNTER, "Total user and system CPU time in seconds."),
)
"""Of this process, by the names that every client library has."""

Labels = tuple[str, ...]


@dataclass(slots=True)
class Figures:
    """Counts and levels, changed by the agent's threads and read by a scrape."""

    _values: dict[Figure, dict[Labels, float]] = field(default_factory=dict)
    _series: int = 0
    _round_ended: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, figure: Figure, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        with self._lock:
            known = self._values.setdefault(figure, {})
            if self._admit(known, labels):
                known[labels] = known.get(labels, 0) + by

    def level(self, figure: Figure, levels: Mapping[Labels, float]) -> None:
        """Replace all series of a gauge: what is not among them is gone."""
        with self._lock:
            self._series -= len(self._values.pop(figure, {}))
            known = self._values.setdefault(figure, {})
            known.update({each: levels[each] for each in levels if self._admit(known, each)})

    def round_ended(self) -> None:
        """A round of all checks is over."""
        self._round_ended = time.monotonic()

    def text(self) -> str:
        """All of it, as a scrape reads it."""
        with self._lock:
            kept = {figure: dict(series) for figure, series in self._values.items()}
        times = os.times()
        kept[CHILDREN_CPU] = {(): times.children_user + times.children_system}
        if self._round_ended is not None:
            kept[ROUND_AGE] = {(): time.monotonic() - self._round_ended}
        lines = [line for each in AGENT_FIGURES if each in kept for line in _family(each, kept)]
        return "\n".join((*lines, *_process(times.user + times.system))) + "\n"

    def _admit(self, known: dict[Labels, float], labels: Labels) -> bool:
        """Whether there is room; a new series beyond the limit is counted as refused."""
        if labels in known:
            return True
        if self._series >= SERIES_LIMIT:
            refused = self._values.setdefault(REFUSED_SERIES, {})
            refused[()] = refused.get((), 0) + 1
            return False
        self._series += 1
        return True


def _family(figure: Figure, kept: Mapping[Figure, Mapping[Labels, float]]) -> Iterator[str]:
    yield f"# HELP {figure.exposed} {figure.text}"
    yield f"# TYPE {figure.exposed} {figure.kind}"
    for labels, value in sorted(kept[figure].items()):
        named = zip(figure.labels, labels, strict=True)
        inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in named)
        yield (
            f"{figure.exposed}{{{inside}}} {value:.10g}"
            if inside
            else (f"{figure.exposed} {value:.10g}")
        )


def _process(cpu: float) -> Iterator[str]:
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return
    for (name, kind, text), value in zip(
        _PROCESS, (pages * os.sysconf("SC_PAGE_SIZE"), cpu), strict=True
    ):
        figure = Figure(name, kind, text)
        yield from _family(figure, {figure: {(): value}})


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
