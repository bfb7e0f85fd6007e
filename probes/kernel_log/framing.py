"""Take the wrapping off a kernel message: records, prefixes, escapes, several in one line.

The message families search for their own words, so a prefix need not be understood to be
harmless; here is only what decides something: who wrote the line, and when.
"""

import re
from dataclasses import dataclass

from probes.kernel_log import address

_RECORD = re.compile(r"(\d{1,10}),(\d{1,20}),(\d{1,20}),([^;]*);")
_FACILITY = re.compile(
    r"(?:\S+: )?(kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local[0-7])"
    r" *: ?(?:emerg|alert|crit|err|warn|warning|notice|info|debug) *:"
)
_PRIORITY = re.compile(r"<(\d{1,4})>")
_SECONDS = re.compile(r"(?:<\d+>|[^\[]*)\[ *(\d{1,12}\.\d{1,9})\]")
_COLOUR = re.compile(r"(?:\x1b|\\x1[bB]|#033|\^\[)\[[0-9;?]*[A-Za-z]")
_SPACE = re.compile(r"\\x09|#011")
_NEXT = re.compile(
    r"\\x0[aAdD]|#01[25]|\\[nr]|[\n\r\v\f\x85\u2028\u2029]"  # newlines, as anybody escapes them
    r"|(?=NVRM:)|(?=nvidia-nvswitch\d+: SXid \()"  # heads that may be glued to what came before
    rf"|(?<!NVRM: )(?<!S)(?=Xid \((?:PCI:)?{address.PATTERN})"
    r"|(?=\[ *\d+\.\d{6}\])"
)

KERNEL = 0
"""Syslog facility of the kernel. `/dev/kmsg` gives every other one to user space."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of `/dev/kmsg`: `prio,seq,usec,flags;text`, without its device tags.

    usec: microseconds since boot. text: still with the kernel's escapes (`\\x0a`), which
    `probes.kernel_log.read` understands.
    """

    facility: int
    level: int
    sequence: int
    usec: int
    flags: str
    text: str

    @property
    def from_user_space(self) -> bool:
        """Whether a process wrote it: no evidence about the machine."""
        return self.facility != KERNEL


def parse_record(record: bytes) -> Record:
    """Read one record of `/dev/kmsg`; ValueError where the bytes are no record."""
    text = record.decode("utf-8", "replace")
    head = _RECORD.match(text)
    if head is None:
        raise ValueError(f"not a /dev/kmsg record (prio,seq,usec,flags;text): {text[:60]!r}")
    priority, sequence, usec = int(head[1]), int(head[2]), int(head[3])
    message = text[head.end() :].partition("\n")[0]
    return Record(priority >> 3, priority & 7, sequence, usec, head[4], message)


def messages(text: str) -> tuple[str, ...]:
    """The messages of one log line, framed in any way or not at all.

    A line that user space wrote has none: it is no evidence.
    """
    text = _COLOUR.sub("", text)
    if _from_user_space(text):
        return ()
    return tuple(piece for piece in _NEXT.split(_SPACE.sub(" ", text)) if piece)


def _from_user_space(text: str) -> bool:
    if record := _RECORD.match(text):
        return int(record[1]) >> 3 != KERNEL
    if priority := _PRIORITY.match(text):
        return int(priority[1]) >> 3 != KERNEL
    facility = _FACILITY.match(text)
    return facility is not None and facility[1] != "kern"


def uptime(text: str) -> float | None:
    """Seconds since boot at which a line was printed, where its frame says so."""
    if record := _RECORD.match(text):
        return int(record[3]) / 1e6
    seconds = _SECONDS.match(text[:200])
    return float(seconds[1]) if seconds else None
