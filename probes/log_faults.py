"""Let the kernel log, and what was repaired since, change the faults that stand.

The agent does it as the log grows, a verify does it over the whole log: by the same two functions.
Only the agent, which was there, can tell whose processes the lines are about, and so which jobs
failed on one GPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fleet.fault import FaultName
from probes.applications import Applications
from probes.evidence import Claim, Cleared, Counted, Evidence, weigh
from probes.fault_set import FaultSet
from probes.job_failures import JobFailure, JobFailures
from probes.kernel_log import framing, host, xid
from probes.kernel_log.answer import Answer
from probes.kernel_log.lines import Block
from probes.kernel_log.read import Reader
from probes.kernel_log.reading import Reading
from probes.kmsg import Followed
from probes.parts import Naming, owner_of
from probes.pod_names import PodNames
from probes.records import Kind, Record
from probes.whose import HITS_ALL, Whose

OF_ONE_CHANNEL = frozenset({94, 109})
"""Xids about a channel, besides those that are its application's: the process in their lines is the
one whose channel it was. In lines about the whole GPU it is whoever was in the driver just then."""
Pods = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """Who can tell whose processes the lines are about, and keeps whose own faults there were.

    Without `names` nobody can tell which jobs are unrelated.
    """

    whose: Whose
    applications: Applications
    failures: JobFailures = field(default_factory=JobFailures)
    names: PodNames | None = None


def take(
    faults: FaultSet,
    naming: Naming,
    reader: Reader,
    followed: Sequence[Followed],
    now: datetime,
    witness: Witness | None = None,
) -> dict[tuple[str, str], int]:
    """Let records of the log change what stands; returns how often what moved nothing, by code."""
    counted: dict[tuple[str, str], int] = {}
    if not followed:
        return counted
    block = Block(followed[0].record.sequence, b"\n".join(each.line for each in followed))
    for each, answer in zip(followed, reader.answers(block), strict=True):
        evidence = _weighed(answer, naming) if each.new else ()
        if not evidence:
            continue
        pods = _pods(each, answer, evidence, naming, witness, now)
        for said, hit in zip(evidence, pods, strict=True):
            _move(faults, said, each.record.sequence, hit, now)
            if isinstance(said, Counted):
                key = (said.fault, said.code)
                counted[key] = counted.get(key, 0) + 1
            if witness:
                _witnessed(faults, witness, said, each.record, hit, now)
    return counted


def _witnessed(
    faults: FaultSet,
    witness: Witness,
    said: Evidence,
    record: framing.Record,
    hit: Pods,
    now: datetime,
) -> None:
    """A job's own fault is counted as its own, and against a GPU on which others failed, too."""
    if isinstance(said, Cleared):
        witness.failures.forget(said.part)
    if not isinstance(said, Counted) or said.fault != FaultName.APPLICATION:
        return
    name = witness.names.of(hit[0], now) if witness.names and hit else None
    witness.applications.add(said.part, said.code, hit[0] if hit else "", name)
    if name is None:
        return
    at, gpu = record.usec / 1e6, owner_of(said.part)
    failure = JobFailure(gpu, name.namespace, hit[0], at, at, record.sequence)
    claim = witness.failures.add(failure, said.code)
    if claim is not None:
        faults.claim(claim, record.sequence, now, witness.failures.pods(gpu))


def _move(faults: FaultSet, said: Evidence, sequence: int, hit: Pods, now: datetime) -> None:
    if isinstance(said, Claim):
        faults.claim(said, sequence, now, hit)
    elif isinstance(said, Cleared):
        faults.clear(said.part, sequence)


def _pods(
    followed: Followed,
    answer: Answer,
    evidence: Sequence[Evidence],
    naming: Naming,
    witness: Witness | None,
    now: datetime,
) -> list[Pods]:
    """Whom each reading hit: its process's pod, or all that were on its GPU; else nobody."""
    if witness is None:
        return [()] * len(evidence)
    at, whose = followed.record.usec / 1e6, witness.whose
    pids: Sequence[int | None] | None = None
    found: list[Pods] = []
    for number, (said, reading) in enumerate(zip(evidence, answer.readings, strict=True)):
        pods: Pods = ()
        if isinstance(said, Claim) and said.fault in HITS_ALL:
            pods = whose.pods_on(owner_of(said.part), now, at)
        elif _of_one_process(reading):
            pids = pids or pids_of(answer.readings, followed.line)
            pods = whose.pods_of(naming.root, pids[number], at, now)
        found.append(pods)
    return found


def _of_one_process(reading: Reading) -> bool:
    channel = reading.kind == "xid" and reading.code in OF_ONE_CHANNEL
    return channel or reading.fault == FaultName.APPLICATION


def pids_of(readings: Sequence[Reading], line: bytes) -> list[int | None]:
    """The process of each reading of a line; none of any where the line cannot be told apart."""
    text = line.decode("utf-8", "replace")
    if len(readings) == 1 and readings[0].kind == "app":
        return [host.process(text)]
    pids = [pid for pid, _ in xid.processes(text)]
    if [each.kind for each in readings] != ["xid"] * len(pids):
        return [None] * len(readings)
    return pids


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
                faults.lapse(part, record.at)
        if record.kind is Kind.VERIFY:
            for part in record.parts:
                faults.prove(part, record.checks, record.at)
