"""Does a fault still stand on a node, by what the node says now? In three values. Pure.

Our own conditions count only with a living agent and for the Node's present boot; another's counts
by the status that the fault's code names.
"""

from collections.abc import Iterable

from fleet.condition import ConditionMessage, parse_message
from fleet.fault import CONDITION_OF, Fault, FaultName
from fleet.finding import Finding, Verdict
from fleet.node import Condition, NodeState

FOREIGN_CODE = "condition:"
"""Codes of faults that another's condition showed: `condition:Ready=Unknown`."""

_OUR_TYPES = frozenset(str(each) for each in CONDITION_OF.values())


def standing(
    fault: Fault, node: NodeState, *, agent_alive: bool, evidence: Iterable[Finding] = ()
) -> Verdict:
    """FAULT: it stands. OK: positively not. UNKNOWN: nobody who would know says either.

    `evidence` is what a verify on this very boot found; it outranks the conditions.
    """
    if any(each.fault is fault.name and each.part == fault.part for each in evidence):
        return Verdict.FAULT
    if fault.name is FaultName.MONITOR_SILENT:
        return Verdict.OK if agent_alive else Verdict.FAULT
    if fault.code.startswith(FOREIGN_CODE):
        return _foreign(fault.code.removeprefix(FOREIGN_CODE), node)
    kind = CONDITION_OF.get(fault.name)
    if kind is None or not agent_alive:
        return Verdict.UNKNOWN
    return _own(fault, _condition(node, kind), node.boot_id)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """FAULT if any stands; OK only if all are; of nothing at all nothing is known."""
    seen = set(verdicts)
    if Verdict.FAULT in seen:
        return Verdict.FAULT
    return Verdict.OK if seen == {Verdict.OK} else Verdict.UNKNOWN


def own_faults(node: NodeState) -> tuple[str, ...]:
    """Our conditions that say fault for the present boot, with their reasons."""
    return tuple(
        f"{each.type} ({each.reason})"
        for each in node.conditions
        if each.type in _OUR_TYPES and each.status == "False" and _of_boot(each, node.boot_id)
    )


def own_unknowns(node: NodeState) -> tuple[str, ...]:
    """Our conditions that say nothing about the present boot."""
    return tuple(
        each.type
        for each in node.conditions
        if each.type in _OUR_TYPES
        and (each.status == "Unknown" or not _of_boot(each, node.boot_id))
    )


def _foreign(code: str, node: NodeState) -> Verdict:
    kind, _, status = code.partition("=")
    found = _condition(node, kind)
    if found is None:
        return Verdict.UNKNOWN
    if kind == "Ready":
        return Verdict.OK if found.status == "True" else Verdict.FAULT
    if found.status == status:
        return Verdict.FAULT
    return Verdict.UNKNOWN if found.status == "Unknown" else Verdict.OK


def _own(fault: Fault, found: Condition | None, boot_id: str) -> Verdict:
    message = _message(found)
    if found is None or message is None or message.boot_id != boot_id:
        return Verdict.UNKNOWN
    if any(each.key == fault.key for each in message.faults):
        return Verdict.FAULT
    if found.status == "Unknown" or message.more:
        return Verdict.UNKNOWN
    return Verdict.OK


def _condition(node: NodeState, kind: str) -> Condition | None:
    return next((each for each in node.conditions if each.type == kind), None)


def _message(condition: Condition | None) -> ConditionMessage | None:
    try:
        return parse_message(condition.message) if condition else None
    except ValueError:
        return None


def _of_boot(condition: Condition, boot_id: str) -> bool:
    message = _message(condition)
    return message is not None and message.boot_id == boot_id
