"""Recognise the lines that a storm is made of, and answer them without reading each.

The lines of a storm differ in digits. A line without its digits is its shape, and a shape tells
whether a line is plain: one Xid in a usual frame, nothing escaped, nothing glued to it. What a
plain line says is decided by its head (device, MIG instance, code) and, for a few codes, by the
parts of its tail that `probes.kernel_log.xid` looks at. No other line is read here.
"""

import re

from probes.kernel_log import xid
from probes.kernel_log.answer import MAX_ANSWERS, Answer, answer, keep

DIGITS = b"0123456789abcdef"
HEAD = b"NVRM: Xid (PCI:"

MAX_SHAPE = 1024
"""Bytes of a shape that is kept."""
MAX_TAIL = 2048
"""Bytes of a tail that is looked at here; the kernel prints no longer message."""

# Shapes have no digits: `kernel` is `krnl`, `Xid` is `Xi`. That a shape is plain may not depend on
# what it lost, hence no glued message (`NVRM`, `Xi (`) and no `[` that might begin a time.
_FRAME = (
    rb"(?:[0-7],,,,[^;\\#\x00-\x1f\x7f-\xff]*;"  # a record of /dev/kmsg, by the kernel
    rb"|[^,]{2}"
    rb"(?:krn *:\w+ *: [-T:.,+]+ |(?:[A-Z]\w* +:: [\w.-]+ |[-T:.,+Z]+ [\w.-]+ )?krnl: )?"
    rb"(?:\[[ .+]*\] |\[[A-Z]\w* [A-Z]\w* +:: \] )?)"
)
_PLAIN = re.compile(
    _FRAME + rb"NVRM: Xi \(PCI:(?:(?!NVRM|Xi \()[^\\#\[\x00-\x1f\x7f-\xff])*", re.DOTALL
)
_KEY = re.compile(
    rb"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}(?: GPU-I:\d{1,4})?(?: GPU-CI:\d{1,4})?\): (\d{1,3})"
)


class Storm:
    """What is known of plain lines.

    shapes: those known to be plain. answers: by the key of a line, for codes whose tail decides
    nothing.
    """

    def __init__(self) -> None:
        self.shapes: set[bytes] = set()
        self.answers: dict[bytes, Answer] = {}
        self._by_tail: dict[tuple[bytes, xid.Decisive], Answer] = {}

    def is_plain(self, shape: bytes) -> bool:
        """Whether all lines of this shape are plain."""
        if len(shape) > MAX_SHAPE or not _PLAIN.fullmatch(shape):
            return False
        if len(self.shapes) >= MAX_ANSWERS:
            self.shapes.clear()
        self.shapes.add(shape)
        return True

    def answer(self, key: bytes, tail: bytes) -> Answer | None:
        """The answer of a plain line, by what stands before its first comma and after it.

        None where that is no device and code, or more than is looked at here.
        """
        head = _KEY.fullmatch(key)
        if head is None or len(tail) > MAX_TAIL:
            return None
        if int(head[1]) not in xid.TAILS:
            return keep(self.answers, key, _read(key))
        decisive = xid.TAILS[int(head[1])].decisive(tail.decode())
        known = self._by_tail.get((key, decisive))
        return known or keep(self._by_tail, (key, decisive), _read(key + b", " + tail))


def _read(message: bytes) -> Answer:
    reading = xid.read((HEAD + message).decode())
    return answer((reading,) if reading else ())
