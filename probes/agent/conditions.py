"""The nine conditions of a node, from what stands on it. Pure.

`True` is said only where we would know of a fault: with a doubt about what we may have missed, or a
log that nobody reads, a condition without faults is `Unknown`.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from fleet.condition import format_message
from fleet.fault import (
    CONDITION_OF,
    Advice,
    ConditionType,
    Fault,
    FaultName,
    camel_case,
)
from fleet.node import Condition
from fleet.part import HOST

HEALTHY = "Healthy"
"""The reason of a condition that is True."""

_COUNT = re.compile(r" count=(\d+) ")

Conditions = Mapping[str, Condition]
"""By type."""


def conditions(
    boot_id: str,
    faults: Sequence[Fault],
    unknown: str = "",
    untold: Mapping[str, str] = MappingProxyType({}),
) -> Conditions:
    """The nine conditions. `faults` come worst first.

    `unknown` is why we might not know of any, `untold` why not of those of one type.
    """
    found: dict[str, list[Fault]] = {each.value: [] for each in ConditionType}
    for fault in faults:
        found[CONDITION_OF[fault.name].value].append(fault)
    return {
        kind: _condition(kind, boot_id, these, unknown or untold.get(kind, ""))
        for kind, these in found.items()
    }


def monitor_silent(code: str, since: datetime) -> Fault:
    """Our own sensor is broken, not the node."""
    return Fault(HOST, FaultName.MONITOR_SILENT, code, Advice.NONE, 1, since)


Digest = tuple[str, str, str, str]


def digest(condition: Condition) -> Digest:
    """Changes when a condition is worth a patch: a count only by its power of ten."""
    message = _COUNT.sub(lambda found: f" count={'0' * len(found[1])} ", condition.message)
    return condition.type, condition.status, condition.reason, message


def matter(condition: Condition) -> Digest:
    """Changes when a fault comes, goes or gets worse, whatever is counted."""
    message = _COUNT.sub(" ", condition.message)
    return condition.type, condition.status, condition.reason, message


def _condition(kind: str, boot_id: str, faults: list[Fault], unknown: str) -> Condition:
    message = format_message(boot_id, faults)
    if faults:
        return Condition(kind, "False", camel_case(faults[0].name), message)
    if unknown and kind != ConditionType.PROBES:
        return Condition(kind, "Unknown", unknown, message)
    return Condition(kind, "True", HEALTHY, message)
