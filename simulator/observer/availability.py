"""Node availability: the share of node time in which a node took new work."""

from datetime import datetime

from simulator.observer import sight
from simulator.observer.transcript import Write


def availability(writes: list[Write]) -> float:
    """From the first sight of each node to the last write; 1.0 where there was no node.

    A node takes work while it is ready, and carries neither a hold of ours nor the taint of one
    that is to be proven first.
    """
    spans: dict[str, list[tuple[datetime, bool]]] = {}
    for write in writes:
        if write.done and write.resource == "nodes" and "spec" in write.response:
            serving = _serves(write.response)
            spans.setdefault(write.name, []).append((write.at, serving))
    if not spans:
        return 1.0
    end = max(write.at for write in writes)
    begun = {name: _first_ready(changes) for name, changes in spans.items()}
    total = sum((end - begun[name]).total_seconds() for name in spans)
    served = sum(_served(changes, begun[name], end) for name, changes in spans.items())
    return round(served / total, 4) if total else 1.0


def _serves(node: sight.Json) -> bool:
    return sight.ready(node) and sight.hold(node) is None and sight.unproven(node) is None


def _first_ready(changes: list[tuple[datetime, bool]]) -> datetime:
    """A node counts from when it first took work: its birth is no outage."""
    return next((at for at, serving in changes if serving), changes[0][0])


def _served(changes: list[tuple[datetime, bool]], begun: datetime, end: datetime) -> float:
    times = [*(at for at, _ in changes[1:]), end]
    spans = (
        (until - max(at, begun)).total_seconds()
        for (at, serving), until in zip(changes, times, strict=True)
        if serving and until > begun
    )
    return sum(spans)
