"""Xid messages: the driver's numbered GPU errors.

One small pattern for the head (device, MIG instance, code); what a tail adds is read per code
and may be missing without losing the head.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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
_ITS_WORDS = re.compile(r", pid=[^,]{1,12}(?:, name=[^,]{0,15})?(?=,|$)")
_PARENT = r"caused by previous Xid (\d{1,10})"
_RESET_ASKED = r"ontained: .*\bRST: Yes"
_SPARES_GONE = r"SRAM.*(?i:threshold.*exceeded)|(?i:exceeded).*SRAM.*(?i:threshold)"
_RECOVERY = r"recovery action changed from 0x[0-9a-fA-F]+(?: \([^()]*\))? to 0x([0-9a-fA-F]{1,8})"

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


Decisive = tuple[str | None, ...] | None
"""The parts of a tail that decide its reading; None where it has not what is looked for."""


def read(message: str) -> Reading | None:
    """The Xid in a message, or None where there is no head with a code."""
    if "Xid" not in message or not (head := HEAD.search(message)):
        return None
    number = int(head[3])
    code = catalog.xids().get(number, _UNLISTED)
    instance = _INSTANCE.search(head[2])
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
    return tail.judge(reading, decisive(number, message, head.end())) if tail else reading


def decisive(code: int, message: str, start: int) -> Decisive:
    """The parts that decide, beside the head, what a message says.

    start: where its head ends. What a process is called decides nothing.
    """
    tail = TAILS.get(code)
    if tail is None or message.find(tail.word, start) < 0:
        return None
    process = _ITS_WORDS.match(message, start)
    found = tail.pattern.search(message, process.end() if process else start)
    return found.groups() if found else None


def processes(text: str) -> Iterator[tuple[int | None, str | None]]:
    """Process id and name after each head in a line, None where it has none."""
    for head in HEAD.finditer(text):
        process = _PROCESS.match(text, head.end())
        pid, name = process.groups() if process else (None, None)
        yield int(pid) if pid else None, name or None


def _severity(code: catalog.Code) -> str:
    """What the catalogue says, at least `degraded` where the action disrupts."""
    mild = code.severity in ("unknown", "info", "warning")
    disrupts = code.action in ACTIONS and ACTIONS.index(code.action) >= ACTIONS.index("drain")
    return "degraded" if mild and disrupts else code.severity


@dataclass(frozen=True, slots=True)
class Tail:
    """What the tail of a code decides: by the groups of a pattern, and by nothing else.

    word: part of every text that the pattern matches.
    """

    word: str
    pattern: re.Pattern[str]
    judge: Callable[[Reading, Decisive], Reading]


def _tail(word: str, pattern: str, judge: Callable[[Reading, Decisive], Reading]) -> Tail:
    return Tail(word, re.compile(pattern), judge)


def _torn_down(reading: Reading, parent: Decisive) -> Reading:
    return replace(reading, parent=int(parent[0] or 0)) if parent else reading


def _contained(reading: Reading, reset_asked: Decisive) -> Reading:
    action = reading.action if reset_asked is None else "reset_gpu"
    return replace(reading, action=action, note="contained")


def _uncorrectable(reading: Reading, spares_gone: Decisive) -> Reading:
    if spares_gone is None:
        return reading
    return replace(reading, action="replace", fault="memory-exhausted")


def _recovery(reading: Reading, value: Decisive) -> Reading:
    """Follow the new value. Where the line is cut before it, neither clear nor accuse."""
    if value is None:
        return replace(reading, fault="none")
    number = int(value[0] or "", 16)
    if number not in RECOVERY:
        return replace(
            reading, sev="degraded", action="hold", fault="unknown-code", recovery=number
        )
    action, fault = RECOVERY[number]
    sev = "fatal" if number else "info"
    return replace(reading, sev=sev, action=action, fault=fault, recovery=number)


TAILS: Mapping[int, Tail] = MappingProxyType(
    {
        45: _tail("caused by", _PARENT, _torn_down),
        48: _tail("SRAM", _SPARES_GONE, _uncorrectable),
        94: _tail("RST: Yes", _RESET_ASKED, _contained),
        154: _tail("recovery action", _RECOVERY, _recovery),
        172: _tail("SRAM", _SPARES_GONE, _uncorrectable),
        **dict.fromkeys(range(144, 151), _tail("atal", nvlink5.TAIL, nvlink5.judge)),
    }
)
"""Codes whose reading needs more than the head. Of the others the tail is never looked at."""
