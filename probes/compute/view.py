"""Read what the child printed, however much of it came: pure, and never raising.

A value that is not what it should be is left out, as if it had never been said.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from probes.compute.backend import Arithmetic
from probes.compute.patterns import Kept
from probes.nvml import view as nvml
from probes.parts import short_address

LINE_LIMIT = 1_000
LOOK_LIMIT = 8
TEXT_LIMIT = 200
SUM_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Made:
    """What a GPU's products came to in one arithmetic: batches by sum, operations a second."""

    sums: Mapping[int, int]
    rate: float


@dataclass(frozen=True, slots=True)
class Carried:
    """Bytes a second from the host and back to it, and words that came back wrong."""

    inward: float
    outward: float
    bad: int


@dataclass(frozen=True, slots=True)
class GpuExam:
    """What is known of one GPU; None or empty is what was not told.

    `error` is what its library said when it gave up, `short` that this was for want of memory.
    """

    pci: str
    model: str = ""
    made: Mapping[Arithmetic, Made] = field(default_factory=dict)
    carried: Carried | None = None
    kept: Kept | None = None
    error: str = ""
    short: bool = False


@dataclass(frozen=True, slots=True)
class Exam:
    """Everything that one child said. `whole`: it came to its end.

    `missing` is what it lacked to do anything at all, `phase` what it was about to do last,
    `expected` the sum of every right product, `loaded` what NVML said under load,
    each time.
    """

    gpus: Mapping[str, GpuExam] = field(default_factory=dict)
    begun: bool = False
    missing: str = ""
    phase: str = ""
    expected: int | None = None
    loaded: tuple[nvml.View, ...] = ()
    whole: bool = False


def read(output: str) -> Exam:
    """The examination in a child's output."""
    exam = Exam()
    for line in output.splitlines()[:LINE_LIMIT]:
        document = _document(line)
        for word, take in _KINDS.items():
            if word in document:
                exam = take(exam, document)
                break
    return exam


def _document(line: str) -> Mapping[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _gpu(exam: Exam, word: str, said: Mapping[str, Any], **changes: Any) -> Exam:
    """The exam with more known of the GPU that a line is about."""
    try:
        pci = short_address(_text(said[word]))
    except ValueError:
        return exam
    known = exam.gpus.get(pci, GpuExam(pci))
    return replace(exam, gpus={**exam.gpus, pci: replace(known, **changes)})


def _device(exam: Exam, said: Mapping[str, Any]) -> Exam:
    return _gpu(exam, "device", said, model=_text(said.get("model")))


def _products(exam: Exam, said: Mapping[str, Any]) -> Exam:
    tallies = said.get("made")
    made = dict(_made(tallies)) if isinstance(tallies, dict) else {}
    return _gpu(exam, "products", said, made=made)


def _made(tallies: Mapping[str, Any]) -> Iterator[tuple[Arithmetic, Made]]:
    for arithmetic in Arithmetic:
        match tallies.get(arithmetic.value):
            case {"sums": [*pairs], "rate": rate}:
                yield arithmetic, Made(dict(_sums(pairs)), _rate(rate))


def _sums(pairs: Sequence[Any]) -> Iterator[tuple[int, int]]:
    for pair in pairs[:SUM_LIMIT]:
        match pair:
            case [int() as sum_, int() as times] if times > 0:
                yield sum_, times


def _copies(exam: Exam, said: Mapping[str, Any]) -> Exam:
    rates = _rate(said.get("inward")), _rate(said.get("outward"))
    return _gpu(exam, "copies", said, carried=Carried(*rates, _count(said.get("bad"))))


def _memory(exam: Exam, said: Mapping[str, Any]) -> Exam:
    names = ("size", "total", "held", "patterns", "of", "bad", "first", "bits")
    numbers = {name: _count(said.get(name)) for name in names}
    return _gpu(exam, "memory", said, kept=Kept(**numbers, pattern=_text(said.get("pattern"))))


def _error(exam: Exam, said: Mapping[str, Any]) -> Exam:
    text = _text(said.get("said")) or "no word"
    return _gpu(exam, "error", said, error=text, short=said.get("short") is True)


def _expected(exam: Exam, said: Mapping[str, Any]) -> Exam:
    value = said["expected"]
    return replace(exam, expected=value) if _is_whole(value) else exam


def _loaded(exam: Exam, said: Mapping[str, Any]) -> Exam:
    text = said["loaded"]
    if not isinstance(text, str) or len(exam.loaded) >= LOOK_LIMIT:
        return exam
    return replace(exam, loaded=(*exam.loaded, nvml.read(text)))


_KINDS: Mapping[str, Callable[[Exam, Mapping[str, Any]], Exam]] = {
    "device": _device,
    "products": _products,
    "copies": _copies,
    "memory": _memory,
    "error": _error,
    "expected": _expected,
    "loaded": _loaded,
    "begun": lambda exam, _: replace(exam, begun=True),
    "missing": lambda exam, said: replace(exam, missing=_text(said["missing"]) or "no word"),
    "phase": lambda exam, said: replace(exam, phase=_text(said["phase"])),
    "end": lambda exam, _: replace(exam, whole=True),
}
"""Lines by the word that makes them what they are."""


def _text(said: Any) -> str:
    return said[:TEXT_LIMIT] if isinstance(said, str) else ""


def _is_whole(said: Any) -> bool:
    return isinstance(said, int) and not isinstance(said, bool)


def _count(said: Any) -> int:
    return said if _is_whole(said) and said >= 0 else 0


def _rate(said: Any) -> float:
    """0 where none was told: then it is not judged."""
    if isinstance(said, bool) or not isinstance(said, int | float):
        return 0.0
    try:
        rate = float(said)
    except OverflowError:
        return 0.0
    return rate if math.isfinite(rate) and rate > 0 else 0.0
