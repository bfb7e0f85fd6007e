"""Node conditions as text: the one place that writes and reads the message of our own types.

`boot=<boot id>`, then one logfmt line a fault, worst first as the writer ordered them. Whoever may
list nodes reads this, so it holds no serial number and no raw log line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.fault import Advice, Fault, FaultName
from fleet.instant import format_instant, parse_instant
from fleet.part import parse_part
from fleet.pod import parse_pods

MESSAGE_LIMIT = 8_192
"""Characters of a message; it is cut by whole lines, and `more=<n>` counts what was cut."""


@dataclass(frozen=True, slots=True)
class ConditionMessage:
    """What a message says: the boot it belongs to, its faults, and how many more were cut off."""

    boot_id: str
    faults: tuple[Fault, ...] = ()
    more: int = 0


def format_message(boot_id: str, faults: Sequence[Fault], limit: int = MESSAGE_LIMIT) -> str:
    """Write the message of a condition; lines that do not fit are counted, never halved."""
    head = f"boot={boot_id}"
    lines = [_format_fault(fault) for fault in faults]
    kept = len(lines)
    while kept and len(_join(head, lines, kept)) > limit:
        kept -= 1
    return _join(head, lines, kept)


def parse_message(text: str) -> ConditionMessage:
    """Read a message; raise ValueError that names the line it could not read."""
    head, *lines = text.split("\n")
    boot_id = _fields(head).get("boot")
    if not boot_id:
        raise ValueError(f"a condition message starts with boot=<boot id>, not {head[:80]!r}")
    more = 0
    if lines and lines[-1].startswith("more="):
        more = int(lines.pop().removeprefix("more="))
    return ConditionMessage(boot_id, tuple(_parse_fault(line) for line in lines), more)


def _join(head: str, lines: Sequence[str], kept: int) -> str:
    cut = len(lines) - kept
    return "\n".join([head, *lines[:kept], *([f"more={cut}"] if cut else [])])


def _format_fault(fault: Fault) -> str:
    line = (
        f"part={fault.part} fault={fault.name} code={fault.code} advice={fault.advice}"
        f" count={fault.count} since={format_instant(fault.since)}"
    )
    identity = f" id={fault.id}" if fault.id else ""
    hit = f" pods={','.join(fault.pods)}" if fault.pods else ""
    return f"{line}{identity}{hit}"


def _parse_fault(line: str) -> Fault:
    try:
        fields = _fields(line)
        return Fault(
            part=parse_part(fields["part"]),
            name=_fault_name(fields["fault"]),
            code=fields["code"],
            advice=Advice(fields["advice"]),
            count=int(fields["count"]),
            since=parse_instant(fields["since"]),
            id=fields.get("id", ""),
            pods=parse_pods(fields.get("pods", "")),
        )
    except (KeyError, ValueError) as problem:
        raise ValueError(f"not a fault line: {line[:160]!r} ({problem})") from problem


def _fault_name(text: str) -> FaultName:
    """A name from a newer agent is a fault that we do not know, not a reading error."""
    try:
        return FaultName(text)
    except ValueError:
        return FaultName.UNKNOWN_CODE


def _fields(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split(" ") if "=" in word)
