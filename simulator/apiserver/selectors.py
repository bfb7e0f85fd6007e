"""Label and field selectors: from their text (or LabelSelector object) to a test of an object."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from simulator.apiserver.kinds import Kind
from simulator.apiserver.status import bad_request

Test = Callable[[dict[str, Any]], bool]
LabelTest = Callable[[Mapping[str, str]], bool]

_SET = re.compile(r"^(?P<key>[^\s!=,()]+)\s+(?P<how>in|notin)\s*\((?P<values>[^()]*)\)$")
_COMPARE = re.compile(r"^(?P<key>[^\s!=<>,()]+)\s*(?P<how>==|=|!=|<|>)\s*(?P<value>[^\s=!<>,()]*)$")
_KEY = re.compile(r"^(?P<not>!?)\s*(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)$")
_OUTSIDE_BRACKETS = re.compile(r",(?![^()]*\))")

FIELDS: dict[str, tuple[str, ...]] = {
    "nodes": ("spec.unschedulable",),
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "jobs": ("status.successful",),
}


def everything(_: dict[str, Any]) -> bool:
    """The selector that is not there."""
    return True


def selector(kind: Kind, label_text: str, field_text: str) -> Test:
    """One test of both selectors of a request; 400 if either cannot be understood."""
    if not label_text and not field_text:
        return everything
    labels = parse_labels(label_text)
    fields = parse_fields(kind, field_text)
    return lambda obj: labels(obj["metadata"].get("labels") or {}) and fields(obj)


def parse_labels(text: str) -> LabelTest:
    """`a=b,c!=d,e in (f,g),h notin (i),j,!k`."""
    terms = [part.strip() for part in _OUTSIDE_BRACKETS.split(text) if part.strip()]
    return _all_of([_term(text, part) for part in terms])


def label_selector(value: dict[str, Any] | None) -> LabelTest:
    """A LabelSelector object: none at all selects nothing, an empty one everything."""
    if value is None:
        return lambda _: False
    tests = [_in(key, {wanted}) for key, wanted in (value.get("matchLabels") or {}).items()]
    tests += [_expression(e) for e in value.get("matchExpressions") or []]
    return _all_of(tests)


def parse_fields(kind: Kind, text: str) -> Test:
    """`metadata.name=x,spec.nodeName!=y`; only fields that the kind offers."""
    tests = [_field(kind, part) for part in text.split(",") if part]
    return lambda obj: all(test(obj) for test in tests)


def _all_of(tests: list[LabelTest]) -> LabelTest:
    return lambda labels: all(test(labels) for test in tests)


def _in(key: str, values: set[str]) -> LabelTest:
    return lambda labels: labels.get(key) in values


def _not_in(key: str, values: set[str]) -> LabelTest:
    return lambda labels: labels.get(key) not in values


def _exists(key: str) -> LabelTest:
    return lambda labels: key in labels


def _absent(key: str) -> LabelTest:
    return lambda labels: key not in labels


def _term(whole: str, text: str) -> LabelTest:
    if found := _SET.match(text):
        values = {value.strip() for value in found["values"].split(",")}
        return (_in if found["how"] == "in" else _not_in)(found["key"], values)
    if (found := _COMPARE.match(text)) and found["how"] not in "<>":
        return (_not_in if found["how"] == "!=" else _in)(found["key"], {found["value"]})
    if found := _KEY.match(text):
        return (_absent if found["not"] else _exists)(found["key"])
    raise bad_request(f"unable to parse requirement: {text!r} in {whole!r}")


def _expression(expression: dict[str, Any]) -> LabelTest:
    key, values = expression["key"], set(expression.get("values") or ())
    operators: dict[str, LabelTest] = {
        "In": _in(key, values),
        "NotIn": _not_in(key, values),
        "Exists": _exists(key),
        "DoesNotExist": _absent(key),
    }
    return operators[expression["operator"]]


def _field(kind: Kind, text: str) -> Test:
    match = re.match(r"^([^=!]+)(==|=|!=)(.*)$", text)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    name, how, wanted = match.groups()
    supported = ("metadata.name", "metadata.namespace", *FIELDS.get(kind.plural, ()))
    if name not in supported:
        raise bad_request(f"field label not supported: {name}")
    path = tuple(name.split("."))
    return lambda obj: (_value(obj, path) == wanted) != (how == "!=")


def _value(obj: dict[str, Any], path: tuple[str, ...]) -> str:
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool) or (value is None and path[-1] in ("unschedulable", "hostNetwork")):
        return "true" if value else "false"
    if isinstance(value, dict):  # events: `source` is a component there
        return str(value.get("component", ""))
    return "" if value is None else str(value)
