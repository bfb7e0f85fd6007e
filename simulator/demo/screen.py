"""The live picture of a run in a terminal: racks at a glance, troubled nodes, and what was said.

It fits itself to the terminal: first the racks, then the nodes that have something, then sentences.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from simulator.observer import sight
from simulator.observer.sight import Json

RACK_LABEL = "topology.kubernetes.io/rack"
POOL_LABEL = "gpumend.io/pool"
MOST_SENTENCES = 200
FEWEST_SENTENCES = 6
FRAME_LINES = 4
"""Lines of the head and of the table's frame."""
STYLES = {
    "well": "green",
    "sick": "red",
    "unproven": "blue",
    "held": "yellow",
    "probation": "cyan",
    "not ready": "bold red",
}
"""States in the order in which the head counts them."""


class Screen:
    """Redrawn in place, four times a second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: deque[Text] = deque(maxlen=MOST_SENTENCES)
        self._nodes: Mapping[str, Json] = {}
        self._started = time.monotonic()
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self.render)
        self._live.start()

    def say(self, node: str, sentence: str) -> None:
        """One sentence; of several lines each stands for itself."""
        seconds = time.monotonic() - self._started
        first, *more = sentence.splitlines() or [""]
        self._lines.append(Text(f"{seconds:6.1f}s  {node:<8} {first}"))
        self._lines.extend(Text(f"  {each}") for each in more)

    def show(self, nodes: Mapping[str, Json]) -> None:
        """The nodes as they stand."""
        self._nodes = dict(nodes)

    def close(self) -> None:
        """Leave the last picture."""
        self._live.stop()

    def render(self) -> Group:
        """The picture for the terminal as it is now."""
        width, height = self._console.size
        racks = _racks(self._nodes, width)
        room = height - len(racks) - FRAME_LINES - 1
        troubled = _troubled(self._nodes)
        rows = max(0, min(len(troubled), room - FEWEST_SENTENCES))
        lines = max(1, room - rows)
        said = [_fit(each, width) for each in list(self._lines)[-lines:]]
        return Group(_head(self._nodes), *racks, _table(troubled[:rows]), *said)


def state_of(node: Json) -> str:
    """A node's state in a word, a key of STYLES."""
    if not sight.ready(node):
        return "not ready"
    if sight.hold(node) is not None:
        return "held"
    if sight.mark(node):
        return "probation"
    if sight.unproven(node) is not None:
        return "unproven"
    return "sick" if sight.faults(node) else "well"


def _head(nodes: Mapping[str, Json]) -> Text:
    states = [state_of(each) for each in nodes.values()]
    text = Text(f"{len(nodes)} nodes: ")
    for name, style in STYLES.items():
        text.append(f"{states.count(name)} {name}  ", style=style)
    return text


def _racks(nodes: Mapping[str, Json], width: int) -> list[Text]:
    """A line a rack: the numbers of its nodes, coloured by how they are."""
    racks: dict[tuple[str, str], list[str]] = {}
    for name in sorted(nodes, key=_number):
        labels = sight.labels(nodes[name])
        racks.setdefault((labels.get(RACK_LABEL, ""), labels.get(POOL_LABEL, "")), []).append(name)
    lines = []
    for (rack, pool), names in sorted(racks.items()):
        line = Text(f"{rack:<7} {pool:<10}")
        for name in names:
            line.append(f"{_number(name)[0]:>4}", style=STYLES[state_of(nodes[name])])
        lines.append(_fit(line, width))
    return lines


def _troubled(nodes: Mapping[str, Json]) -> list[tuple[str, Json]]:
    """Nodes that have something to show: those that are held first."""
    found = [(name, each) for name, each in nodes.items() if state_of(each) != "well"]
    order = list(STYLES)[::-1]
    return sorted(found, key=lambda row: (order.index(state_of(row[1])), _number(row[0])))


def _table(rows: Sequence[tuple[str, Json]]) -> Table:
    table = Table(expand=False, box=None, padding=(0, 2, 0, 0))
    for title in ("node", "ready", "says", "hold", "incident"):
        table.add_column(title, no_wrap=True, overflow="ellipsis")
    for name, node in rows:
        table.add_row(name, *_cells(node))
    return table


def _cells(node: Json) -> tuple[Text, ...]:
    ready, hold, mark = sight.ready(node), sight.hold(node), sight.mark(node) or {}
    said = ", ".join(sorted(sight.faults(node)))
    return (
        Text("yes" if ready else "no", style="green" if ready else "red"),
        Text(said or "healthy", style="red" if said else "green"),
        Text(hold or "", style="yellow"),
        Text(str(mark.get("state", ""))),
    )


def _fit(line: Text, width: int) -> Text:
    fitted = line.copy()
    fitted.truncate(width, overflow="ellipsis")
    return fitted


def _number(name: str) -> tuple[int, str]:
    digits = "".join(each for each in name if each.isdigit())
    return int(digits or 0), name
