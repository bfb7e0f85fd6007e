"""Xid messages: the driver's numbered GPU errors.

One small pattern for the head (device, MIG instance, code); what a tail adds is read per code
and may be missing without losing the head.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from probes import catalog
from probes.kernel_log import address, nvlink5
from probes.kernel_log.reading import ACTIONS, Reading

HEAD = re.compile(
    rf"(?<!S)Xid \((?:PCI:)?({address.PATTERN})([^)]{{0,64}})\) ?: ?(\d{{1,10}})(?!\d)"
)
_INSTANCE = re.compile(r"GPU-I:(\d{1,4})")
_PROCESS = re.compile(
    r", pid=(?:(\d{1,10})|'?<unknown>'?)(?:, name=(?:<unknown>|(.{0,15}?))(?=, [A-Zcei]|,?$))?"
)
_PARENT = re.compile(r"caused by previous Xid (\d{1,10})")
_RESET_ASKED = re.compile(r"ontained: .*\bRST: Yes")
_SPARES_GONE = re.compile(r"SRAM.*threshold.*exceeded|exceeded.*SRAM.*threshold", re.IGNORECASE)
_RECOVERY = re.compile(
    r"recovery action changed from 0x[0-9a-f]+(?: \([^()]*\))? to 0x([0-9a-f]{1,8})", re.IGNORECASE
)

RECOVERY: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        0: ("none", "none"),
        1: ("reset_gpu", "firmware-halted"),
        2: ("reboot", "driver-hung"),
        3: ("drain", "nvlink-error"),
        4: ("reset_gpu", "firmware-halted"),
        5: ("hold", "fabric-not-ready"),
        6: ("reboot", "gpu-lost"),
        7: ("reboot", "driver-hung"),
    }
)
"""Action and fault of each recovery action that the driver may ask for (Xid 154), by value:
the labels differ from driver to driver."""

_UNLISTED = catalog.Code(0, "", "unknown", "unknown", "hold", "unknown-code")


def read(message: str) -> Reading | None:
    """The Xid in a message, or None where there is no head with a code."""
    if "Xid" not in message or not (head := HEAD.search(message)):
        return None
    number = int(head[3])
    code = catalog.xids().get(number, _UNLISTED)
    instance = _INSTANCE.search(head[2])
    rest = message[head.end() :]
    reading = Reading(
        kind="xid",
        code=number,
        class_=code.class_,
        sev=_severity(code),
        action=code.action,
        fault=code.fault,
        pci=address.normal(head[1]),
        mig=int(instance[1]) if instance else None,
    )
    tail = TAILS.get(number)
    return tail(reading, rest[_end_of_process(rest) :]) if tail else reading


def processes(text: str) -> Iterator[tuple[int | None, str | None]]:
    """Process id and name after each head in a line, None where it has none."""
    for head in HEAD.finditer(text):
        process = _PROCESS.match(text, head.end())
        pid, name = process.groups() if process else (None, None)
        yield int(pid) if pid else None, name or None


def _end_of_process(rest: str) -> int:
    process = _PROCESS.match(rest)
    return process.end() if process else 0


def _severity(code: catalog.Code) -> str:
    """What the catalogue says, at least `degraded` where the action disrupts."""
    mild = code.severity in ("unknown", "info", "warning")
    disrupts = code.action in ACTIONS and ACTIONS.index(code.action) >= ACTIONS.index("drain")
    return "degraded" if mild and disrupts else code.severity


def _torn_down(reading: Reading, tail: str) -> Reading:
    parent = _PARENT.search(tail)
    return replace(reading, parent=int(parent[1])) if parent else reading


def _contained(reading: Reading, tail: str) -> Reading:
    action = "reset_gpu" if _RESET_ASKED.search(tail) else reading.action
    return replace(reading, action=action, note="contained")


def _uncorrectable(reading: Reading, tail: str) -> Reading:
    if not _SPARES_GONE.search(tail):
        return reading
    return replace(reading, action="replace", fault="memory-exhausted")


def _recovery(reading: Reading, tail: str) -> Reading:
    """Follow the new value. Where the line is cut before it, neither clear nor accuse."""
    value = _RECOVERY.search(tail)
    if value is None:
        return replace(reading, fault="none")
    number = int(value[1], 16)
    if number not in RECOVERY:
        return replace(
            reading, sev="degraded", action="hold", fault="unknown-code", recovery=number
        )
    action, fault = RECOVERY[number]
    sev = "fatal" if number else "info"
    return replace(reading, sev=sev, action=action, fault=fault, recovery=number)


TAILS: Mapping[int, Callable[[Reading, str], Reading]] = MappingProxyType(
    {
        45: _torn_down,
        48: _uncorrectable,
        94: _contained,
        154: _recovery,
        172: _uncorrectable,
        **dict.fromkeys(range(144, 151), nvlink5.decode),
    }
)
"""Codes whose reading needs more than the head. Of the others the tail is never looked at."""
