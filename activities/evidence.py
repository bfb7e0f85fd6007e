"""Does a fault still stand on a node, by what the node says now? In three values. Pure.

What our own conditions say, and for which boot they count, is read by `policies.own_conditions`;
another's condition counts by the status that the fault's code names.
"""

from collections.abc import Iterable
from datetime import datetime

from fleet.fault import CONDITION_OF, Fault, FaultName
from fleet.finding import Verdict
from fleet.node import NodeState
from fleet.open_request import CODE
from policies.own_conditions import Said, read_own

FOREIGN_CODE = "condition:"
"""Codes of faults that another's condition showed: `condition:Ready=Unknown`."""


def standing(fault: Fault, node: NodeState, now: datetime, *, agent_alive: bool) -> Verdict:
    """FAULT: it stands. OK: positively not. UNKNOWN: nobody who would know says either."""
    if fault.code == CODE:
        request = node.open_request
        return Verdict.FAULT if request and request.fault is fault.name else Verdict.OK
    if fault.name is FaultName.MONITOR_SILENT:
        return Verdict.OK if agent_alive else Verdict.FAULT
    if fault.code.startswith(FOREIGN_CODE):
        return _foreign(fault.code.removeprefix(FOREIGN_CODE), node)
    if not agent_alive:
        return Verdict.UNKNOWN
    return _own(fault, read_own(node, now))


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """FAULT if any stands; OK only if all are; of nothing at all nothing is known."""
    seen = set(verdicts)
    if Verdict.FAULT in seen:
        return Verdict.FAULT
    return Verdict.OK if seen == {Verdict.OK} else Verdict.UNKNOWN


def _foreign(code: str, node: NodeState) -> Verdict:
    kind, _, status = code.partition("=")
    found = next((each.status for each in node.conditions if each.type == kind), None)
    if kind == "Ready" and found is not None:
        return Verdict.OK if found == "True" else Verdict.FAULT
    if found == status:
        return Verdict.FAULT
    return Verdict.UNKNOWN if found in (None, "Unknown") else Verdict.OK


def _own(fault: Fault, said: Said) -> Verdict:
    if any(each.key == fault.key for each in said.faults):
        return Verdict.FAULT
    kind = CONDITION_OF.get(fault.name)
    vague = kind is None or any(each.startswith((f"{kind}:", "agent:")) for each in said.unknown)
    return Verdict.OK if said.spoke and not vague else Verdict.UNKNOWN
