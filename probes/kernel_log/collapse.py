"""One reading a distinct fault, counted: a storm of 800,000 lines may say 29 things.

Two readings are one fault when they say the same: device, code, sub-code, link or parent,
severity and action. Line, process and time don't count.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from probes.kernel_log.lines import Block
from probes.kernel_log.read import Reader
from probes.kernel_log.reading import Reading

MAX_DISTINCT = 10_000
"""Distinct faults told apart. What comes after them is counted, not listed."""


@dataclass(slots=True)
class Tally:
    """How often a reading was made, and on which lines first and last."""

    reading: Reading
    count: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Distinct faults in the order of their first lines, and how many readings are in none."""

    tallies: tuple[Tally, ...]
    unlisted: int


def collapse(reader: Reader, blocks: Iterable[Block]) -> Collapsed:
    """Count the readings of the lines of one boot."""
    tallies: dict[Reading, Tally] = {}
    rest: list[Tally] = []
    for block in blocks:
        for number, answer in enumerate(reader.answers(block), block.first):
            if answer.kept is None:
                answer.kept = [_tally(tallies, rest, said, number) for said in answer.readings]
            for tally in answer.kept:
                tally.count += 1
                tally.last = number
    return Collapsed(tuple(tallies.values()), sum(tally.count for tally in rest))


def _tally(
    tallies: dict[Reading, Tally], rest: list[Tally], reading: Reading, number: int
) -> Tally:
    found = tallies.get(reading)
    if found is None and len(tallies) < MAX_DISTINCT:
        found = tallies[reading] = Tally(reading, 0, number, number)
    if found is None:
        if not rest:
            rest.append(Tally(reading, 0, number, number))
        found = rest[0]
    return found
