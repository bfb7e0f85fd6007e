"""Taking back what the mark says we did to a node, and nothing else. Pure.

An entry is written in the same patch as what it undoes, so that whoever finds the node can undo it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fleet.mark import UNDO_CORDON, UNDO_OUT_OF_SERVICE, UNDO_TAINT, Mark
from fleet.names import HOLD_TAINT, OUT_OF_SERVICE_TAINT
from fleet.node import Manifest
from fleet.ports import Json

PAUSED_VALUE = "paused-by-gpumend"
"""Of a GPU Operator's deploy label: no operand's selector asks for it."""

_LABEL = "label:"
_ANNOTATION = "annotation:"
_TAINTS: Mapping[str, str] = {UNDO_TAINT: HOLD_TAINT, UNDO_OUT_OF_SERVICE: OUT_OF_SERVICE_TAINT}


def label_entry(key: str, before: str) -> str:
    """The record of a label that had another value before."""
    return f"{_LABEL}{key}={before}"


def annotation_entry(key: str) -> str:
    """The record of an annotation that was not there before."""
    return f"{_ANNOTATION}{key}"


def paused_labels(mark: Mark) -> dict[str, str]:
    """The labels that are paused, with the values that they had."""
    entries = (each.removeprefix(_LABEL) for each in mark.undo if each.startswith(_LABEL))
    return {key: value for key, _, value in (each.partition("=") for each in entries)}


def without(mark: Mark, entries: Iterable[str]) -> Mark:
    """The mark once these are undone."""
    gone = set(entries)
    return replace(mark, undo=tuple(each for each in mark.undo if each not in gone))


def undo_changes(manifest: Manifest, entries: Iterable[str]) -> Json:
    """A merge patch that undoes these entries; what somebody changed since stays as he left it."""
    entries = set(entries)
    metadata: Json = {}
    labels = _labels(manifest, entries)
    annotations = {
        each.removeprefix(_ANNOTATION): None for each in entries if each.startswith(_ANNOTATION)
    }
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    spec: Json = {}
    gone = {taint for entry, taint in _TAINTS.items() if entry in entries}
    if gone:
        standing = (manifest.get("spec") or {}).get("taints") or ()
        spec["taints"] = [each for each in standing if each["key"] not in gone] or None
    if UNDO_CORDON in entries:
        spec["unschedulable"] = None
    return {
        **({"metadata": metadata} if metadata else {}),
        **({"spec": spec} if spec else {}),
    }


def _labels(manifest: Manifest, entries: Iterable[str]) -> dict[str, str]:
    present = manifest["metadata"].get("labels") or {}
    found = (each.removeprefix(_LABEL) for each in entries if each.startswith(_LABEL))
    pairs = (each.partition("=") for each in found)
    return {key: value for key, _, value in pairs if present.get(key) == PAUSED_VALUE}
