"""Recognise the lines that a storm is made of, and answer them without reading each.

A storm repeats few Xids with other times, processes and addresses. Of a line that is one Xid in a
usual frame, time and process decide nothing; what does is the head (device, MIG instance, code)
and, for a few codes, the parts of the tail that `probes.kernel_log.xid` looks at.
"""

import re

from probes.kernel_log import xid
from probes.kernel_log.answer import Answer, answered, keep

HEAD = b"NVRM: Xid (PCI:"

_FRAME = (
    rb"(?:\[[ +0-9.]{1,24}\] |(?:[0-7],\d{1,20},\d{1,20},[^;\\#\n]{0,32};"
    rb"|kern *:\w+ *: [\d:.,T+-]+ "
    rb"|(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} [\w.-]+ |\d{4}-\d\d-\d\dT[\d:.,+Z-]+ [\w.-]+ )?kernel: )?"
    rb"(?:\[[ \d.]{1,24}\] |\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\] )?)"
)
_WORD = rb"[^,\\#\[\x00-\x1f\x7f-\xff]"
_PROCESS = rb"(?:, pid=%b{1,12}, name=%b{0,15}(?=,|$)|, pid=%b{1,12}(?=,|$)|)" % ((_WORD,) * 3)
LINES = re.compile(
    rb"^(?:" + _FRAME + HEAD.replace(b"(", rb"\(") + rb"([^,\n]*)" + _PROCESS + rb"(.*)|(.*))$",
    re.MULTILINE,
)
"""Three parts a line. Of an Xid in a usual frame: what stands between `PCI:` and the first comma,
and what follows the process; any other line is the third."""
FRAMED = re.compile(rb"^" + _FRAME + rb"(.*)$", re.DOTALL)

_ONE = re.compile(
    rb"([0-9a-f]{4}:[0-9a-f:]{5}(?: GPU-I:\d{1,4})?(?: GPU-CI:\d{1,4})?\): (\d{1,3}))"
)
_PLAIN = re.compile(rb"(?:, [^\\#\[\x00-\x1f\x7f-\xff]{0,2048})?")
_HEADS = (b"NVRM", b"Xid (")


class Storm:
    """The answers of plain lines, by what decides them."""

    def __init__(self) -> None:
        self._answers: dict[tuple[bytes, xid.Decisive], Answer] = {}

    def answer(self, head: bytes, tail: bytes) -> Answer | None:
        """The answer of a line by its first two parts; None where they are not plain.

        Plain is: a device and a code, and nothing escaped or glued to it in what follows.
        """
        one = _ONE.fullmatch(head)
        if one is None or not _PLAIN.fullmatch(tail) or any(word in tail for word in _HEADS):
            return None
        message = (HEAD + head + tail).decode()
        key = head, xid.decisive(int(one[2]), message, len(HEAD) + len(head))
        return self._answers.get(key) or keep(self._answers, key, _read(message))


def _read(message: str) -> Answer:
    reading = xid.read(message)
    return answered((reading,) if reading else ())
