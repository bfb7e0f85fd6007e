"""Log lines in, readings out: one line alone, or the lines of one boot by a `Reader`.

A storm repeats a few messages hundreds of thousands of times with other times and processes, so
the reader keeps answers by what decides them. A kept answer is made by the same functions from
the same message, stripped of time and process: it equals a fresh one.
"""

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from probes.kernel_log import framing, host, nic, nvrm, pcie, sxid, xid
from probes.kernel_log.lines import Block
from probes.kernel_log.memory import Memory, concerns, notes_only
from probes.kernel_log.reading import Reading

MAX_MESSAGE = 4096
"""Characters of a message that are looked at, at its start and at its end; the kernel prints at
most 2048."""
MAX_ANSWERS = 8192
"""Answers kept; then the reader forgets them all and goes on."""
MAX_KEY = 1024
"""Bytes of a line whose answer is kept."""

_FAMILIES = (sxid.read, xid.read, nvrm.read, pcie.read, nic.read, host.read)

_WORDS = tuple(
    word.encode()
    for word in (
        "NVRM", "Xid (", "nvidia", "AER: ", "PCIe Bus Error", "mlx5_", "efa", "infiniband",
        "WATCHDOG", "arrier", "Hardware Error", "EDAC", "BERT", "blocked", "libnccl", "uvm",
        "knvlink", "hardware memory", "Missed",
    )
)  # fmt: skip
"""Without one of these a line reads as nothing."""

_FRAME = (
    rb"(?:\[[ 0-9.]{1,24}\] |(?:[0-7],\d{1,20},\d{1,20},[^;\\#\n]{0,32};|"
    rb"(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} [\w.-]+ |\d{4}-\d\d-\d\dT[\d:.,+Z-]+ [\w.-]+ )?kernel: )?"
    rb"(?:\[[ \d.]{1,24}\] |\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\] )?)"
)
_XID = (
    rb"NVRM: Xid \(PCI:([0-9a-f]{4}:[0-9a-f:]{5}(?: GPU-I:[0-9]{1,4})?\): ([0-9]{1,3})), "
    rb"(?:pid=[^,\\#\[\x00-\x1f\x7f-\xff]{1,12}"
    rb"(?:, name=[^,\\#\[\x00-\x1f\x7f-\xff]{0,15})?(?:, |$))?"
    rb"([^\\#\[\x00-\x1f\x7f-\xff]*)"
)
_LINES = re.compile(rb"^(?:" + _FRAME + _XID + rb"|([^\n]*))$", re.MULTILINE).findall
"""Four parts a line. One Xid in a usual frame, which is what a storm is made of, gives device
with code, code, and the tail after the process; every other line gives itself as the fourth."""
_FRAMED = re.compile(_FRAME + rb"(.*)$", re.DOTALL)
_TAILED = frozenset(str(code).encode() for code in xid.TAILS)
_HEAD = b"NVRM: Xid (PCI:"


@dataclass(slots=True)
class Answer:
    """What one line says. `kept` is the caller's, to keep what it makes of the readings.

    remembers: some reading has to pass the memory. noted: the epoch of the memory in which
    passing it again changes neither.
    """

    readings: tuple[Reading, ...]
    remembers: bool = False
    noted: int = -1
    kept: Any = None


NOTHING = Answer(())


def read(text: str) -> tuple[Reading, ...]:
    """Read one log line or kernel record by itself; several glued messages give several readings.

    Never raises, whatever the text. Lines that say nothing give an empty tuple.
    """
    return Reader().read(text)


class Reader:
    """Reads the lines of one boot, in order: a later line is read in the light of earlier ones."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._storm: dict[bytes, Answer] = {}
        self._others: dict[bytes, Answer] = {}
        self._line = 0

    def read(self, text: str | bytes, *, uptime: float | None = None) -> tuple[Reading, ...]:
        """The readings of the next line, with its number, process ids and names.

        uptime: seconds since boot, where the caller knows them better than the line.
        """
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
        self._line += 1
        line = raw.replace(b"\n", b"\\x0a")  # as the kernel writes it: a text is one line
        (answer,) = self.answers(Block(self._line, line), uptime=uptime)
        return _with_processes(answer.readings, raw, self._line) if answer.readings else ()

    def forget_answers(self) -> None:
        """Read on without the kept answers; what the boot's log said so far is remembered."""
        self._storm.clear()
        self._others.clear()

    def answers(self, block: Block, *, uptime: float | None = None) -> list[Answer]:
        """An answer a line, in order, without line numbers, process ids and names.

        This is the loop that a storm runs: it calls nothing for a message it has met before.
        """
        answers, storm, memory = [], self._storm, self._memory
        for number, (key, code, tail, line) in enumerate(_LINES(block.data), block.first):
            if not key or b"NVRM" in tail or b"Xid (" in tail:  # another message glued to it
                answer = self._long_way(line or _HEAD + key + b", " + tail)
            else:
                if code in _TAILED:
                    key += b", " + tail
                answer = storm.get(key) or _keep(storm, key, _one(_HEAD + key))
            if answer.remembers and answer.noted != memory.epoch:
                answer = self._recalled(answer, line, number, uptime)
            answers.append(answer)
        return answers

    def _long_way(self, raw: bytes) -> Answer:
        if not any(word in raw for word in _WORDS):
            return NOTHING
        framed = _FRAMED.match(raw)
        key = framed[1] if framed else raw
        return self._others.get(key) or _keep(self._others, key, _read(key))

    def _recalled(self, answer: Answer, raw: bytes, line: int, uptime: float | None) -> Answer:
        """The answer in the light of the memory; the same object where nothing changes."""
        memory, said = self._memory, answer.readings
        if uptime is None and any(reading.kind == "mce" for reading in said):
            uptime = framing.uptime(raw[:MAX_MESSAGE].decode("utf-8", "replace"))
        recalled = [memory.recall(reading, line, uptime) for reading in said]
        if all(map(operator.is_, recalled, said)):
            if all(map(notes_only, said)):
                answer.noted = memory.epoch
            return answer
        return Answer(tuple(reading for reading in recalled if reading is not None))


def _keep(answers: dict[bytes, Answer], key: bytes, answer: Answer) -> Answer:
    if len(key) <= MAX_KEY and answer is not NOTHING:
        if len(answers) >= MAX_ANSWERS:
            answers.clear()
        answers[key] = answer
    return answer


def _read(raw: bytes) -> Answer:
    """What a line says by itself, readings that only explain others included."""
    messages = framing.messages(raw.decode("utf-8", "replace"))
    return _answer(reading for message in messages if (reading := _message(message)))


def _one(raw: bytes) -> Answer:
    """As `_read`, of a line that is known to be one Xid message and nothing else."""
    reading = xid.read(raw[:MAX_MESSAGE].decode())
    return _answer((reading,) if reading else ())


def _answer(found: Iterable[Reading]) -> Answer:
    readings = tuple(found)
    return Answer(readings, any(map(concerns, readings))) if readings else NOTHING


def _message(message: str) -> Reading | None:
    start = _families(message[:MAX_MESSAGE])
    if start is None and len(message) > MAX_MESSAGE:
        return _families(message[-MAX_MESSAGE:])
    return start


def _families(message: str) -> Reading | None:
    for family in _FAMILIES:
        if reading := family(message):
            return reading
    return None


def _with_processes(readings: tuple[Reading, ...], raw: bytes, line: int) -> tuple[Reading, ...]:
    processes = xid.processes(raw.decode("utf-8", "replace"))
    numbered = []
    for reading in readings:
        pid, name = next(processes, (None, None)) if reading.kind == "xid" else (None, None)
        numbered.append(replace(reading, line=line, pid=pid, name=name))
    return tuple(numbered)
