"""Let the kernel log, and what was repaired since, change the faults that stand.

The agent does it as the log grows, a verify does it over the whole log: by the same two functions.
"""

from collections.abc import Sequence
from datetime import datetime

from probes.evidence import Claim, Cleared, Evidence, weigh
from probes.fault_set import FaultSet
from probes.kernel_log.answer import Answer
from probes.kernel_log.lines import Block
from probes.kernel_log.read import Reader
from probes.kmsg import Followed
from probes.parts import Naming
from probes.records import Kind, Record


def take(
    faults: FaultSet, naming: Naming, reader: Reader, followed: Sequence[Followed], now: datetime
) -> dict[str, int]:
    """Let records of the log change what stands; returns how often each code moved nothing."""
    counted: dict[str, int] = {}
    if not followed:
        return counted
    block = Block(followed[0].record.sequence, b"\n".join(each.line for each in followed))
    for each, answer in zip(followed, reader.answers(block), strict=True):
        sequence = each.record.sequence
        for said in _weighed(answer, naming) if each.new else ():
            if isinstance(said, Claim):
                faults.claim(said, sequence, now)
            elif isinstance(said, Cleared):
                faults.clear(said.part, sequence)
            else:
                counted[said.code] = counted.get(said.code, 0) + 1
    return counted


def _weighed(answer: Answer, naming: Naming) -> tuple[Evidence, ...]:
    """Evidence of a line; a storm repeats its lines, so it is kept with the reader's answer."""
    if not answer.readings:
        return ()
    kept = answer.kept
    if kept is None or kept[0] is not naming.gpus:
        kept = answer.kept = (naming.gpus, tuple(weigh(each, naming) for each in answer.readings))
    evidence: tuple[Evidence, ...] = kept[1]
    return evidence


def apply_records(faults: FaultSet, records: Sequence[Record]) -> None:
    """Take in what steps of this boot left, oldest first; doing it again changes nothing.

    Resets and passed verifies end faults; what an active check found stands until it passes.
    """
    for record in records:
        for check, claim in record.found:
            faults.find(check, claim, record.at)
        if record.kind in (Kind.RESET, Kind.VERIFY):
            for part in record.parts:
                faults.clear(part, record.through)
        if record.kind is Kind.VERIFY:
            for part in record.parts:
                faults.prove(part, record.checks, record.at)
