"""The mark on a node that says: an incident of ours is here, and this is what we changed.

An annotation, so that the cluster is the memory: whoever restarts reads it and goes on.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.instant import format_instant, parse_instant


class MarkState(StrEnum):
    """Held and not yet taken up; taken up by a workflow; repaired and under observation."""

    PENDING = "pending"
    OWNED = "owned"
    PROBATION = "probation"


@dataclass(frozen=True, slots=True)
class Mark:
    """`id` names the incident; `undo` lists what we did to the node and must take back:
    words below, and labels and annotations as `activities/undo.py` writes them.

    `offered` is what the node offered when it was taken up (`nvidia.com/gpu=8`): what comes back
    with less is not repaired.
    """

    id: str
    machine: str
    uid: str
    state: MarkState
    opened: datetime
    undo: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()


UNDO_TAINT = "taint"
"""We put the hold taint on."""
UNDO_CORDON = "cordon"
"""We set `spec.unschedulable`, and nobody had before us."""
UNDO_OUT_OF_SERVICE = "out-of-service"
"""We put the out-of-service taint on a machine that was proven off."""


def format_mark(mark: Mark) -> str:
    """The value of the annotation."""
    fields = {
        "id": mark.id,
        "machine": mark.machine,
        "uid": mark.uid,
        "state": mark.state.value,
        "opened": format_instant(mark.opened),
        "undo": list(mark.undo),
        **({"offered": list(mark.offered)} if mark.offered else {}),
    }
    return json.dumps(fields, separators=(",", ":"))


def parse_mark(text: str) -> Mark:
    """Read an annotation; raise ValueError if it is not one of ours."""
    try:
        fields: Mapping[str, object] = json.loads(text)
        return Mark(
            id=str(fields["id"]),
            machine=str(fields["machine"]),
            uid=str(fields["uid"]),
            state=MarkState(str(fields["state"])),
            opened=parse_instant(str(fields["opened"])),
            undo=_texts(fields, "undo"),
            offered=_texts(fields, "offered"),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise ValueError(f"not an incident mark: {text[:200]!r} ({problem})") from problem


def _texts(fields: Mapping[str, object], name: str) -> tuple[str, ...]:
    texts = fields.get(name, [])
    if not isinstance(texts, list):
        raise ValueError(f"{name} is not a list")
    return tuple(str(text) for text in texts)
