"""What one line says, and a bounded store of such answers.

A storm repeats a few messages hundreds of thousands of times with other times and processes, so
answers are kept by what decides them. What decides them is the business of who keeps them.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from probes.kernel_log.memory import concerns
from probes.kernel_log.reading import Reading

MAX_ANSWERS = 8192
"""Answers kept; then the store forgets them all and goes on."""


@dataclass(slots=True, eq=False)
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
_Key = TypeVar("_Key", bound=Hashable)
_Made = TypeVar("_Made", bound=Answer)


def answered(found: Iterable[Reading]) -> Answer:
    """The answer of a line with these readings; `NOTHING` itself where there are none."""
    readings = tuple(found)
    return Answer(readings, any(map(concerns, readings))) if readings else NOTHING


def keep(answers: dict[_Key, _Made], key: _Key, made: _Made) -> _Made:
    """Keep an answer and give it back."""
    if len(answers) >= MAX_ANSWERS:
        answers.clear()
    answers[key] = made
    return made
