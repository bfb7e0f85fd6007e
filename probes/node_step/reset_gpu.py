"""Reset GPUs through the driver, once, while nobody else of ours holds them.

What is recorded before and after is how a process that comes later knows: a reset that was begun
and not recorded as done may have happened, and is not begun again.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from fleet.finding import Finding
from fleet.part import Part
from fleet.step import NodeStepRequest, Step
from probes.agent.memory import load
from probes.checks.kernel_log import last_record
from probes.checks.subject import NVIDIA_SMI, Subject, hung, unknown
from probes.child import Ended
from probes.machine import Machine, Missing
from probes.node_step.premise import (
    DONE,
    Ending,
    Reason,
    check_premise,
    failed,
    refused,
)
from probes.parts import Naming, owner_of
from probes.records import Kind, Record, read_record, write_record

RESET_LIMIT = 180.0
"""Seconds; NVSwitch machines take a minute. It is never killed, only left behind."""
LOCK_LIMIT = 60.0
"""Seconds to wait until our agent's child has let go of the GPU."""
IN_USE = 255
"""Exit status of nvidia-smi when a process still holds the GPU."""

Clock = Callable[[], datetime]


def reset_gpu(machine: Machine, request: NodeStepRequest, clock: Clock) -> Ending:
    """Reset the GPUs that the parts of the request belong to, all in one call of the tool."""
    refusal = check_premise(machine, request, clock())
    if refusal:
        return refusal
    if not request.parts:
        return refused(Reason.NO_PARTS)
    before = _before(machine, request)
    if before:
        return before
    try:
        with _exclusive(machine.lock, LOCK_LIMIT) as descriptor:
            if descriptor is None:
                return failed(Reason.LOCKED)
            return _locked(machine, request, clock, descriptor)
    except OSError as problem:
        return failed(Reason.STATE_UNWRITABLE, _note(str(problem)))


def _before(machine: Machine, request: NodeStepRequest) -> Ending | None:
    """What an earlier process of the same operation left."""
    try:
        record = read_record(machine.state, request.operation)
    except (OSError, ValueError) as problem:
        return failed(Reason.INTERRUPTED, _note(str(problem)))
    if record is None:
        return None
    return DONE if record.kind is Kind.RESET else failed(Reason.INTERRUPTED)


def _locked(machine: Machine, request: NodeStepRequest, clock: Clock, descriptor: int) -> Ending:
    """With the lock held: look again, write that it begins, reset, write that it is done."""
    subject = Subject(machine, Naming(load(machine.state, request.boot_id).gpus, machine.root))
    subject.keep_open = (descriptor,)
    subject.name_gpus()
    owners = tuple(sorted({owner_of(part) for part in request.parts}))
    addresses = [subject.naming.address(part) for part in owners]
    if not all(addresses):
        return failed(Reason.NO_ADDRESS, _note(f"no PCI address for one of {', '.join(owners)}"))
    refusal = check_premise(machine, request, clock())
    if refusal:
        return refusal
    through = last_record(machine)
    write_record(machine.state, _record(request, Kind.STARTED, owners, through, clock()))
    try:
        ended = subject.run(
            NVIDIA_SMI, "--gpu-reset", "-i", ",".join(map(str, addresses)), limit=RESET_LIMIT
        )
    except Missing as problem:
        return failed(Reason.NO_TOOL, _note(str(problem)))
    ending = _ending(ended)
    if ending is DONE:
        write_record(machine.state, _record(request, Kind.RESET, owners, through, clock()))
    return ending


def _ending(ended: Ended) -> Ending:
    """In use is no verdict on the hardware: somebody has to leave first."""
    said = f"exit {ended.status}: {ended.output} {ended.errors}"
    if ended.hung:
        return failed(Reason.HUNG, hung(Step.RESET_GPU, f"{NVIDIA_SMI} --gpu-reset"))
    if ended.status == 0:
        return DONE
    if ended.no_program:
        return failed(Reason.NO_TOOL, _note(said))
    if ended.status == IN_USE or "in use" in said.lower():
        return failed(Reason.IN_USE, _note(said))
    return failed(Reason.TOOL_FAILED, _note(said))


def _record(
    request: NodeStepRequest, kind: Kind, owners: tuple[Part, ...], through: int, now: datetime
) -> Record:
    """`through` is the log's end before the reset: a line during it counts against it."""
    return Record(request.operation, kind, request.boot_id, owners, through, now)


def _note(text: str) -> Finding:
    return unknown(Step.RESET_GPU, Part("host"), "reset:said", text)


@contextmanager
def _exclusive(lock: Path, seconds: float) -> Iterator[int | None]:
    """The host lock; None if others hold it to the end of the wait (flock has no bounded wait)."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    yield None
                    return
                time.sleep(0.2)
            else:
                yield descriptor
                return
    finally:
        os.close(descriptor)
