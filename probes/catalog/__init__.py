"""The tables of NVIDIA's codes and of machine types: data with its sources (`*.csv`), loaded once.

Every judgement (class, severity, first action, fault) is a row with its source, so that it can
be read, disputed and changed without touching code. Nothing here looks at a log line.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Code:
    """One code of a catalogue: what it says when nothing in its line says more.

    `severity` may be `per_line_word` (SXid: the printed word decides), `action` may be
    `per_unit_rule` (Xid 144-150) or `follow_recovery_action`, `fault` may be `none` or
    `by-value` (Xid 154).
    """

    number: int
    name: str
    class_: str
    severity: str
    action: str
    fault: str


@dataclass(frozen=True, slots=True)
class LinkRule:
    """One row of the NVLink 5 table: which unit, reason and status of an Xid mean which action.

    `units` are the names a driver may print. `ids` are `(mask, value)` pairs for the low bits
    of the first register word: two layouts, by driver age. `statuses` are alternatives.
    """

    xid: int
    units: frozenset[str]
    ids: frozenset[tuple[int, int]]
    reason: int
    statuses: frozenset[int]
    action: str


@dataclass(frozen=True, slots=True)
class InstanceType:
    """What a cloud's machine type has at most: GPUs, and network adapters for collectives."""

    name: str
    gpus: int
    gpu_model: str
    adapters: int


@cache
def instance_types() -> dict[str, InstanceType]:
    """Every known type by its name. One that is not here is unknown, which is not zero."""
    return {
        row["instance_type"]: InstanceType(
            row["instance_type"], int(row["gpus"]), row["gpu_model"], int(row["efa_max"])
        )
        for row in _rows("instances.csv")
    }


@cache
def xids() -> dict[int, Code]:
    """Every known Xid by number."""
    return {code.number: code for code in _codes("xid.csv", "xid")}


@cache
def sxids() -> dict[int, Code]:
    """Every known SXid (NVSwitch) by number."""
    return {code.number: code for code in _codes("sxid.csv", "sxid")}


@cache
def link_rules() -> dict[int, tuple[LinkRule, ...]]:
    """The NVLink 5 rules by Xid (144-150), in the order of the table."""
    found: dict[int, list[LinkRule]] = {}
    for row in _rows("nvlink5.csv"):
        rule = _link_rule(row)
        found.setdefault(rule.xid, []).append(rule)
    return {xid: tuple(rules) for xid, rules in found.items()}


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = resources.files("probes.catalog").joinpath(name).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())


def _codes(name: str, number: str) -> Iterator[Code]:
    for row in _rows(name):
        yield Code(
            number=int(row[number]),
            name=row["name"],
            class_=row["class"],
            severity=row["severity"],
            action=row["first_action"],
            fault=row["fault"],
        )


def _link_rule(row: dict[str, str]) -> LinkRule:
    layouts = (row["unit_id_bits_layout1"], row["unit_id_bits_layout2"])
    return LinkRule(
        xid=int(row["xid"]),
        units=frozenset(row["unit"].split("/")),
        ids=frozenset(((1 << len(bits)) - 1, int(bits, 2)) for bits in layouts),
        reason=int(row["reason_bits_25_20"], 16),
        statuses=frozenset(int(status, 16) for status in row["error_status"].split()),
        action=row["first_action"],
    )
