"""Xid 144-150: the link errors of NVLink 5, decided by unit, reason and status.

The printed word "Fatal" is not the verdict: some reasons that print it need no action. What is
in no row of the table, or cut off the line, holds.
"""

from collections.abc import Sequence
from dataclasses import replace

from probes import catalog
from probes.kernel_log.reading import Reading

TAIL = (
    r"([A-Z][A-Z0-9_/]*)\s+(?:Non-?[Ff]atal|Fatal)(?:\s+XC\d+\s+i\d+\s+Link\s+(-?\d{2,4}|-?\d(?=\D))"
    r"(?:\s*\(\s*0x([0-9a-fA-F]{8})(?:[\s,]+0x([0-9a-fA-F]{8}))?)?)?"
)
"""Groups: unit, link, first word (reason), second word (error status)."""

_SEVERITY = {"none": "warning", "follow_recovery_action": "degraded", "reset_gpu": "fatal"}


def judge(reading: Reading, words: tuple[str | None, ...] | None) -> Reading:
    """Resolve `per_unit_rule` by the groups of `TAIL`."""
    unit, link, first, second = words or (None, None, None, None)
    if unit is None:
        return _judged(reading, None)
    known = replace(
        reading,
        unit=unit,
        link=int(link) if link and int(link) >= 0 else None,
        reason=_reason(int(first, 16)) if first else None,
        status=int(second, 16) if second else None,
    )
    if first is None or second is None:
        return _judged(known, None)
    return _judged(known, _action(reading.code, unit, int(first, 16), int(second, 16)))


def _reason(word: int) -> int:
    return word >> 20 & 0x3F


def _action(xid: int | str, unit: str, word: int, status: int) -> str | None:
    rules = catalog.link_rules()[int(xid)]
    actions = {
        rule.action
        for rule in _of_unit(rules, unit, word)
        if rule.reason == _reason(word) and status in rule.statuses
    }
    return actions.pop() if len(actions) == 1 else None


def _of_unit(rules: Sequence[catalog.LinkRule], unit: str, word: int) -> Sequence[catalog.LinkRule]:
    """The rules of the unit that the low bits and the printed name agree on.

    A name or an id that no table has leaves it to the other; a contradiction leaves nothing.
    """
    named = [rule for rule in rules if rule.units.intersection(unit.split("/"))]
    marked = [rule for rule in rules if any(word & mask == id_ for mask, id_ in rule.ids)]
    if named and marked:
        return [rule for rule in named if rule in marked]
    return named or marked


def _judged(reading: Reading, action: str | None) -> Reading:
    if action is None:
        return replace(reading, sev="degraded", action="hold", fault="unknown-code")
    fault = "none" if action == "none" else reading.fault
    return replace(reading, sev=_SEVERITY[action], action=action, fault=fault)
