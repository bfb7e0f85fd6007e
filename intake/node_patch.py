"""The patches by which the watcher changes a Node: each one merge patch, each a compare-and-set.

Pure. A merge patch writes the list of taints as a whole; that is safe only under the guard of
the resourceVersion that the list was read at, and only if what others wrote comes along unchanged.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from fleet.instant import format_instant
from fleet.mark import Mark, format_mark
from fleet.names import (
    COOL_DOWN_ANNOTATION,
    HOLD_EFFECT,
    HOLD_TAINT,
    MARK_ANNOTATION,
    OPEN_ANNOTATION,
)
from fleet.node import NodeState, Taint
from fleet.open_request import OpenRequest, format_open_request
from fleet.ports import Json


def hold_patch(node: NodeState, mark: Mark, fault: str) -> Json:
    """Hold and mark in one: the taint where there is none of ours yet, an old cool-down ended, a
    person's request taken up."""
    annotations: dict[str, str | None] = {MARK_ANNOTATION: format_mark(mark)}
    if node.cool_down:
        annotations[COOL_DOWN_ANNOTATION] = None
    if node.opened and not node.opened.incident:
        annotations[OPEN_ANNOTATION] = _taken_up(node.opened, mark)
    patch = _guarded(node, annotations)
    if node.hold is None:
        ours = Taint(HOLD_TAINT, fault, HOLD_EFFECT)
        patch["spec"] = {"taints": [_taint(each) for each in (*node.taints, ours)]}
    return patch


def mark_patch(node: NodeState, mark: Mark) -> Json:
    """Change the mark and nothing else."""
    return _guarded(node, {MARK_ANNOTATION: format_mark(mark)})


def take_up_patch(node: NodeState, request: OpenRequest, mark: Mark) -> Json:
    """Note that the incident of this mark looks after a person's request."""
    return _guarded(node, {OPEN_ANNOTATION: _taken_up(request, mark)})


def drop_request_patch(node: NodeState) -> Json:
    """Take a person's request off: the incident that looked after it is over."""
    return _guarded(node, {OPEN_ANNOTATION: None})


def withdraw_patch(node: NodeState) -> Json:
    """Take our hold and our mark off; cordons and taints of others stay."""
    patch = _guarded(node, {MARK_ANNOTATION: None})
    if node.hold is not None:
        others = [_taint(each) for each in node.taints if each.key != HOLD_TAINT]
        patch["spec"] = {"taints": others or None}
    return patch


def cool_down_patch(node: NodeState, until: datetime) -> Json:
    """A person took the hold away: leave the node alone until then, and take off a mark left."""
    annotations: dict[str, str | None] = {COOL_DOWN_ANNOTATION: format_instant(until)}
    if node.mark is not None:
        annotations[MARK_ANNOTATION] = None
    return _guarded(node, annotations)


def _guarded(node: NodeState, annotations: dict[str, str | None]) -> Json:
    metadata: dict[str, Any] = {
        "uid": node.identity.uid,
        "resourceVersion": node.resource_version,
        "annotations": annotations,
    }
    return {"metadata": metadata}


def _taken_up(request: OpenRequest, mark: Mark) -> str:
    return format_open_request(replace(request, incident=mark.id))


def _taint(taint: Taint) -> Json:
    fields = {
        "key": taint.key,
        "value": taint.value,
        "effect": taint.effect,
        "timeAdded": taint.added,
    }
    return {name: value for name, value in fields.items() if value}
