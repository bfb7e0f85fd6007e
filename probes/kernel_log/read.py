"""Log lines in, readings out: one line alone, or the lines of one boot by a `Reader`.

A storm repeats a few messages hundreds of thousands of times with other times and processes, so
the reader keeps answers by what decides them. A kept answer is made by the same functions from
the same message, stripped of time and process: it equals a fresh one.
"""

import itertools
import operator
from dataclasses import replace

from probes.kernel_log import framing, host, nic, nvrm, pcie, sxid, xid
from probes.kernel_log.answer import NOTHING, Answer, answered, keep
from probes.kernel_log.lines import Block
from probes.kernel_log.memory import Memory, notes_only
from probes.kernel_log.reading import Reading
from probes.kernel_log.storm import FRAMED, HEAD, LINES, Storm

MAX_MESSAGE = 4096
"""Characters of a message that are looked at, at its start and at its end; the kernel prints at
most 2048."""
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


def read(text: str) -> tuple[Reading, ...]:
    """Read one log line or kernel record by itself; several glued messages give several readings.

    Never raises, whatever the text. Lines that say nothing give an empty tuple.
    """
    return Reader().read(text)


class Reader:
    """Reads the lines of one boot, in order: a later line is read in the light of earlier ones."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._storm = Storm()
        self._known: dict[tuple[bytes, bytes, bytes], Answer] = {}
        self._messages: dict[bytes, Answer] = {}
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
        self._storm = Storm()
        self._known.clear()
        self._messages.clear()

    def answers(self, block: Block, *, uptime: float | None = None) -> list[Answer]:
        """An answer a line, in order, without line numbers, process ids and names.

        This is the loop that a storm runs: it calls nothing for what it has met before.
        """
        answers, memory = [], self._memory
        lines = LINES.findall(block.data)
        known = map(self._known.get, lines)
        for number, parts, answer in zip(itertools.count(block.first), lines, known):
            if answer is None:
                answer = self._unknown(parts)
            if answer.remembers and answer.noted != memory.epoch:
                answer = self._recalled(answer, parts[2], number, uptime)
            answers.append(answer)
        return answers

    def _unknown(self, parts: tuple[bytes, bytes, bytes]) -> Answer:
        head, tail, line = parts
        if not head:
            return self._other(line)
        made = self._storm.answer(head, tail) or self._message(HEAD + head + tail)
        return keep(self._known, parts, made) if len(tail) <= MAX_KEY else made

    def _other(self, line: bytes) -> Answer:
        if not any(word in line for word in _WORDS):
            return NOTHING
        framed = FRAMED.match(line)
        return self._message(framed[1] if framed else line)

    def _message(self, raw: bytes) -> Answer:
        if known := self._messages.get(raw):
            return known
        made = _read(raw)
        small = len(raw) <= MAX_KEY and made is not NOTHING
        return keep(self._messages, raw, made) if small else made

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


def _read(raw: bytes) -> Answer:
    """What a line says by itself, readings that only explain others included."""
    messages = framing.messages(raw.decode("utf-8", "replace"))
    return answered(reading for message in messages if (reading := _said(message)))


def _said(message: str) -> Reading | None:
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
