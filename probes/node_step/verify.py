"""Prove that a node, or parts of it, are sound: by evidence read now, and by nothing else.

The kernel log is always among what is read, since a passed verify is what ends the agent's log
faults. Unknown does not pass. What still settles would be unknown, so a verify that has the time
waits until it can be told (`probes.settling`).
"""

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from fleet.check import FOUND_BY_STEPS, PAIRS, Check
from fleet.fault import FaultName
from fleet.finding import WORST_FIRST, Finding, Verdict
from fleet.part import HOST, Part
from fleet.step import NodeStepRequest
from probes import checks
from probes.agent.memory import load
from probes.agent.senses import shared
from probes.checks import kernel_log
from probes.checks.subject import Subject
from probes.evidence import Claim
from probes.fault_set import ADVICE_RISING, SEVERITY_RISING, FaultSet
from probes.kept import read_kept
from probes.log import say
from probes.log_faults import apply_records
from probes.machine import Machine
from probes.node_step.premise import DONE, Ending, Reason, check_premise, failed
from probes.parts import Naming, covers
from probes.records import Kind, Record, read_records, write_record
from probes.settling import longest

CHECKS_TAKE = 300.0
"""Seconds of its time that a verify keeps for its checks, however long something still settles."""


def verify(
    machine: Machine,
    request: NodeStepRequest,
    clock: Callable[[], datetime],
    accept_user_space: bool = False,
    wait: Callable[[float], None] = time.sleep,
) -> Ending:
    """Run the checks; DONE with every finding ok, else FAILED, with what was found, worst first.

    `wait` lets seconds pass.
    """
    refusal = check_premise(machine, request, clock())
    if refusal:
        return refusal
    parts = request.parts or (HOST,)
    if seconds := _settles_in(machine, request, parts, clock()):
        say("something still settles", seconds=round(seconds))
        wait(seconds)
    try:
        with shared(machine.lock) as descriptor:
            if descriptor is None:
                return failed(Reason.LOCKED)
            found, through = _look(machine, request, parts, descriptor, clock(), accept_user_space)
    except OSError:
        return failed(Reason.STATE_UNWRITABLE)
    verdicts = {each.verdict for each in found}
    if Verdict.FAULT in verdicts:
        return _found(machine, request, parts, found, clock())
    if Verdict.UNKNOWN in verdicts:
        return failed(Reason.UNKNOWN, *found)
    return _passed(machine, request, parts, found, through, clock())


def _settles_in(
    machine: Machine, request: NodeStepRequest, parts: Sequence[Part], now: datetime
) -> float:
    """Seconds until each check can tell; 0 where there is no time for that."""
    memory = load(machine.state, request.boot_id)
    kept = read_kept(memory.kept)
    subject = Subject(machine, Naming(memory.gpus), kept=kept, clock=lambda: now)
    subject.begin()
    seconds = longest(request.checks, parts, subject.upsets(), subject.at)
    spare = (request.not_after - now).total_seconds() - CHECKS_TAKE
    return seconds if seconds <= spare else 0.0


def _look(
    machine: Machine,
    request: NodeStepRequest,
    parts: Sequence[Part],
    descriptor: int,
    now: datetime,
    accept: bool,
) -> tuple[tuple[Finding, ...], int]:
    memory = load(machine.state, request.boot_id)
    naming, kept = Naming(memory.gpus, machine.root), read_kept(memory.kept)
    subject = Subject(machine, naming, kept=kept, clock=lambda: now)
    subject.keep_open, subject.scope = (descriptor,), tuple(parts)
    subject.until = time.monotonic() + (request.not_after - now).total_seconds()
    subject.name_gpus()
    apply_records(memory.faults, read_records(machine.state, request.boot_id))
    subject.pair, subject.word = request.pair, request.word
    subject.said_by_trials = memory.faults.said_by(PAIRS)
    asked = _asked(memory.faults, request, parts)
    said = [each for each in checks.run(asked, subject) if _concerns(each, parts)]
    log, through = kernel_log.check(machine, subject.naming, parts, now, accept)
    silent = [name for name in asked if name not in {each.check for each in said}]
    missing = [
        Finding(name, HOST, Verdict.UNKNOWN, code="check:silent", evidence="said nothing of it")
        for name in silent
    ]
    return tuple(sorted([*said, *log, *missing], key=_worst)), through


def _asked(faults: FaultSet, request: NodeStepRequest, parts: Sequence[Part]) -> list[str]:
    """The checks of the request, and those active ones whose findings stand: nothing else could
    end them."""
    theirs = faults.found_by(FOUND_BY_STEPS, parts)
    asked = dict.fromkeys((*request.checks, *theirs))
    return [name for name in asked if name != Check.KERNEL_LOG]


def _found(
    machine: Machine,
    request: NodeStepRequest,
    parts: tuple[Part, ...],
    found: tuple[Finding, ...],
    now: datetime,
) -> Ending:
    """What active checks found is left for the agent; of what others see it makes its own mind."""
    active = tuple(
        (each.check, Claim(each.part, each.fault, each.code, each.advice, each.severity))
        for each in found
        if each.fault and each.check in FOUND_BY_STEPS
    )
    if active:
        record = Record(
            request.operation, Kind.FOUND, request.boot_id, parts, -1, now, found=active
        )
        try:
            write_record(machine.state, record)
        except (OSError, ValueError):
            return failed(Reason.STATE_UNWRITABLE, *found)
    return failed(Reason.FAULT, *found)


def _passed(
    machine: Machine,
    request: NodeStepRequest,
    parts: tuple[Part, ...],
    found: tuple[Finding, ...],
    through: int,
    now: datetime,
) -> Ending:
    """The record is what ends the agent's log faults; without it the verify has not passed."""
    refusal = check_premise(machine, request, now)
    if refusal:
        return refusal
    checks = tuple(dict.fromkeys(each.check for each in found))
    record = Record(request.operation, Kind.VERIFY, request.boot_id, parts, through, now, checks)
    try:
        write_record(machine.state, record)
    except (OSError, ValueError):
        return failed(Reason.STATE_UNWRITABLE, *found)
    return Ending(DONE.result, DONE.reason, found)


def _concerns(finding: Finding, parts: Sequence[Part]) -> bool:
    """A sensor of ours that is silent is no fault of what is verified; nor does it speak for it."""
    if finding.fault is FaultName.MONITOR_SILENT:
        return False
    return finding.part == HOST or any(covers(scope, finding.part) for scope in parts)


def _worst(finding: Finding) -> tuple[int, int, int, str, str]:
    return (
        WORST_FIRST.index(finding.verdict),
        -SEVERITY_RISING.index(finding.severity),
        -ADVICE_RISING.index(finding.advice),
        finding.check,
        finding.part,
    )
