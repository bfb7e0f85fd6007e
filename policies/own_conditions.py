"""What our own agent's conditions say. They are believed for the boot that they name and for no
other; what cannot be read is unknown, never healthy.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from fleet.condition import ConditionMessage, parse_message
from fleet.fault import ConditionType, Fault
from fleet.names import DOMAIN
from fleet.node import Condition, NodeState


@dataclass(frozen=True, slots=True)
class Said:
    """What conditions say: faults, what could not be told, and whether one spoke for this boot."""

    faults: tuple[Fault, ...] = ()
    unknown: tuple[str, ...] = ()
    spoke: bool = False


def is_own(condition: Condition) -> bool:
    """Whether the agent wrote it, types of a newer agent included."""
    return condition.type.startswith(f"{DOMAIN}/")


def read_own(node: NodeState, now: datetime) -> Said:
    """All conditions of ours on a node together. Never raises."""
    own = [each for each in node.conditions if is_own(each)]
    if not own:
        return Said(unknown=("agent: has published no condition on this node",))
    read = [_read(each, node.boot_id, now) for each in own]
    absent = sorted(set(ConditionType) - {each.type for each in own})
    return Said(
        faults=tuple(fault for said in read for fault in said.faults),
        unknown=(
            *(reason for said in read for reason in said.unknown),
            *(f"{each.value}: is absent" for each in absent),
        ),
        spoke=any(said.spoke for said in read),
    )


def _read(condition: Condition, boot_id: str, now: datetime) -> Said:
    try:
        message = parse_message(condition.message)
    except ValueError as problem:
        return _unknown(condition, f"cannot be read: {problem}")
    if not boot_id:
        return _unknown(condition, "the node itself names no boot")
    if message.boot_id != boot_id:
        return _unknown(condition, f"is of boot {message.boot_id}, the node is in {boot_id}")
    return _believed(condition, message, now)


def _believed(condition: Condition, message: ConditionMessage, now: datetime) -> Said:
    sick = bool(message.faults or message.more)
    if condition.status == "True" and not sick:
        return Said(spoke=True)
    if condition.status == "False" and sick:
        more = (f"{condition.type}: {message.more} more faults did not fit",) * bool(message.more)
        return Said(tuple(_dated(each, now) for each in message.faults), more, spoke=True)
    if condition.status == "Unknown":
        return Said(unknown=(f"{condition.type}: {condition.reason or 'no reason'}",), spoke=True)
    faults = len(message.faults) + message.more
    return _unknown(condition, f"contradicts itself: {condition.status} with {faults} faults")


def _dated(fault: Fault, now: datetime) -> Fault:
    """A first sight in the future is a wrong clock on the node: ours counts."""
    if fault.since <= now:
        return fault
    return replace(fault, since=now)


def _unknown(condition: Condition, why: str) -> Said:
    return Said(unknown=(f"{condition.type}: {why}",))
