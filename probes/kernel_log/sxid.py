"""SXid messages: the numbered errors of an NVSwitch.

The printed word decides, then the catalogue. Rows that only detail a headline (`Severity …`,
`Data {…}`) repeat its code and are no further event.
"""

import re

from probes import catalog
from probes.kernel_log import address
from probes.kernel_log.reading import Reading, worst_action

HEAD = re.compile(
    rf"SXid \((?:PCI:)?({address.PATTERN})[^)]{{0,64}}\) ?: ?(\d{{1,10}})(?!\d)(?:,\s*(.*))?",
    re.DOTALL,
)
_WORD = re.compile(r"(non-?fatal|fatal|correctable)\b", re.IGNORECASE)
_LINK = re.compile(r"\bLink\s+(\d{2,4}|\d(?=\D))")
_DETAILS = ("Severity", "Data")
_UNLISTED = catalog.Code(0, "", "unknown", "unknown", "hold", "unknown-code")
_FATAL_FAULT = {"nvlink": "nvlink-error", "thermal": "thermal"}


def read(message: str) -> Reading | None:
    """The SXid in a message, or None where there is no head with a code."""
    if "SXid" not in message or not (head := HEAD.search(message)):
        return None
    number, tail = int(head[2]), head[3] or ""
    code = catalog.sxids().get(number, _UNLISTED)
    pci = address.normal(head[1])
    if _is_detail(tail):
        return Reading("sxid_detail", number, code.class_, "info", "none", "none", pci=pci)
    word = _WORD.match(tail)
    link = _LINK.search(tail)
    sev, action, fault = _judge(code, word[1].lower().replace("-", "") if word else None)
    return Reading(
        kind="sxid",
        code=number,
        class_=code.class_,
        sev=sev,
        action=action,
        fault=fault,
        pci=pci,
        link=int(link[1]) if link else None,
    )


def _is_detail(tail: str) -> bool:
    """A row of a headline, even one that is cut in the middle of its first word."""
    return tail.startswith(_DETAILS) or (
        bool(tail) and any(word.startswith(tail.rstrip()) for word in _DETAILS)
    )


def _judge(code: catalog.Code, word: str | None) -> tuple[str, str, str]:
    if word == "fatal":
        fault = code.fault
        if fault == "none":  # the catalogue knows it as harmless, the switch says otherwise
            fault = _FATAL_FAULT.get(code.class_, "fabric-not-ready")
        return "fatal", worst_action((code.action, "drain")), fault
    if word == "nonfatal":
        return ("warning" if code.action == "none" else "degraded"), code.action, code.fault
    if word == "correctable":
        return "info", "none", "none"
    return "unknown", "hold", "unknown-code"  # cut before the word that decides
