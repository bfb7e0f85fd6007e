"""What one kernel message says: the words, and how they are printed.

Nothing here knows a log line. Severities and actions are plain strings from the two tuples
below, in rising order, because readings are made by the hundred thousand.
"""

from collections.abc import Iterable
from dataclasses import dataclass

ACTIONS = ("none", "hold", "drain", "reset_gpu", "reboot", "replace")
"""In rising order. A reading may also say `follow_recovery_action`: ask the driver first."""

CONTEXT = "context"
"""Kind of a line that says nothing alone but explains a later one. Never leaves the reader."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One message, read. Absent values are None and are not printed.

    code: number for `xid`, `sxid`, `sxid_detail`, else a word. pci: `domain:bus:device[.f]`.
    dev: kernel name of a network device. mig: GPU instance. link: NVLink number. unit, reason,
    status: NVLink 5 registers. recovery: new value of Xid 154. parent: Xid that caused this one.
    fault: a key of the policy file, or `none`. pid, name: of the process, where the line has
    them; line: number in the file, from 1, or 0. about: what else the line is about (the GPU by
    its driver's index, the device whose error a port passed on). The last four say nothing about
    the fault.
    """

    kind: str
    code: int | str
    class_: str
    sev: str
    action: str
    fault: str
    pci: str | None = None
    dev: str | None = None
    mig: int | None = None
    unit: str | None = None
    link: int | None = None
    reason: int | None = None
    status: int | None = None
    recovery: int | None = None
    parent: int | None = None
    note: str | None = None
    pid: int | None = None
    name: str | None = None
    line: int = 0
    about: str | None = None


def plain(reading: Reading) -> str:
    """The reading as `key=value` words, without line, fault, pid and name."""
    words = (
        ("kind", reading.kind),
        ("code", reading.code),
        ("pci", reading.pci),
        ("dev", reading.dev),
        ("class", reading.class_),
        ("sev", reading.sev),
        ("action", reading.action),
        ("mig", reading.mig),
        ("unit", reading.unit),
        ("link", reading.link),
        ("reason", _hex(reading.reason, 2)),
        ("status", _hex(reading.status, 1)),
        ("recovery", reading.recovery),
        ("parent", reading.parent),
        ("note", reading.note),
    )
    return " ".join(f"{key}={value}" for key, value in words if value is not None)


def mapping(reading: Reading) -> dict[str, int | str]:
    """The reading for JSON, without its line: numbers as integers, absent keys left out."""
    everything = {
        "kind": reading.kind,
        "code": reading.code,
        "pci": reading.pci,
        "dev": reading.dev,
        "mig": reading.mig,
        "class": reading.class_,
        "fault": reading.fault,
        "sev": reading.sev,
        "action": reading.action,
        "link": reading.link,
        "unit": reading.unit,
        "reason": reading.reason,
        "status": reading.status,
        "recovery": reading.recovery,
        "parent": reading.parent,
        "note": reading.note,
    }
    return {key: value for key, value in everything.items() if value is not None}


def worst_action(actions: Iterable[str]) -> str:
    """The latest step among actions of `ACTIONS`."""
    return max(actions, key=ACTIONS.index)


def _hex(value: int | None, digits: int) -> str | None:
    return None if value is None else f"0x{value:0{digits}x}"
