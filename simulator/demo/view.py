"""What a person sees of a run: a live table in a terminal, plain lines otherwise, or nothing."""

import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from simulator.observer import sight
from simulator.observer.sight import Json

LINES = 14


class View(Protocol):
    """Takes what happens; `say` is about a node or, with an empty name, about the run."""

    def say(self, node: str, sentence: str) -> None:
        """One sentence."""
        ...

    def show(self, nodes: Mapping[str, Json]) -> None:
        """The nodes as they stand."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


class Plain:
    """A line a sentence, with the seconds since the start."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._started = time.monotonic()

    def say(self, node: str, sentence: str) -> None:
        seconds = time.monotonic() - self._started
        self._out.write(f"{seconds:6.1f}s  {node:<8} {sentence}\n")
        self._out.flush()

    def show(self, nodes: Mapping[str, Json]) -> None:
        """Nothing: lines tell what changed."""

    def close(self) -> None:
        """Nothing to put away."""


class Silent:
    """For programs that read only the summary."""

    def say(self, node: str, sentence: str) -> None:
        """Nothing."""

    def show(self, nodes: Mapping[str, Json]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Screen:
    """A table of the nodes over the last sentences, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._lines: deque[str] = deque(maxlen=LINES)
        self._nodes: Mapping[str, Json] = {}
        self._started = time.monotonic()
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._render)
        self._live.start()

    def say(self, node: str, sentence: str) -> None:
        seconds = time.monotonic() - self._started
        self._lines.append(f"{seconds:6.1f}s  {node:<8} {sentence}")

    def show(self, nodes: Mapping[str, Json]) -> None:
        self._nodes = dict(nodes)

    def close(self) -> None:
        self._live.stop()

    def _render(self) -> Group:
        table = Table(expand=False)
        for title in ("node", "ready", "says", "hold", "incident"):
            table.add_column(title)
        for name in sorted(self._nodes, key=_number):
            table.add_row(name, *_cells(self._nodes[name]))
        return Group(table, Text("\n".join(self._lines)))


def choose(as_json: bool) -> View:
    """The view that fits standard output."""
    if as_json:
        return Silent()
    console = Console()
    return Screen(console) if console.is_terminal else Plain(sys.stdout)


def _cells(node: Json) -> tuple[Text, ...]:
    ready, hold, mark = sight.ready(node), sight.hold(node), sight.mark(node) or {}
    said = ", ".join(sorted(sight.faults(node)))
    return (
        Text("yes" if ready else "no", style="green" if ready else "red"),
        Text(said or "healthy", style="red" if said else "green"),
        Text(hold or "", style="yellow"),
        Text(str(mark.get("state", ""))),
    )


def _number(name: str) -> tuple[int, str]:
    digits = "".join(each for each in name if each.isdigit())
    return int(digits or 0), name
