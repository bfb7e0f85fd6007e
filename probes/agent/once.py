"""What the agent would publish now, for a person on the node. Remembers nothing, tells nobody."""

import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from fleet.check import Check
from fleet.node import Condition
from fleet.part import HOST
from probes import checks
from probes.agent.core import Core
from probes.agent.memory import load
from probes.agent.rounds import Timed
from probes.agent.senses import shared
from probes.checks import kernel_log, left_overs
from probes.checks.subject import Subject, ok, unknown
from probes.kept import read_kept
from probes.kmsg import open_source
from probes.machine import Machine
from probes.parts import Naming
from probes.processes import Heard
from probes.records import read_records

_BATCH = 512
KERNEL_LOG = Check.KERNEL_LOG


@dataclass(frozen=True, slots=True)
class Looked:
    """One look: the nine conditions, and every check."""

    conditions: tuple[Condition, ...]
    checks: tuple[Timed, ...]


def look_once(
    machine: Machine, key: bytes, now: datetime, accept: bool, names: Iterable[str] = ()
) -> Looked:
    """Look at everything, or run only the named checks.

    Raises OSError or ValueError where the boot id cannot be read.
    """
    core = Core(machine, load(machine.state, machine.boot_id()), accept)
    naming, kept = Naming(core.memory.gpus, machine.root), read_kept(core.memory.kept)
    subject = Subject(machine, naming, kept=kept)
    names = tuple(names)
    timed, heard = _checks(subject, key, names)
    core.named(dict(subject.naming.gpus))
    core.heard(heard, now)
    began = time.monotonic()
    try:
        _read(core, now)
    except OSError:
        core.trouble["reader:unreadable"] = now
    core.repaired(read_records(machine.state, core.memory.cursor.boot_id))
    findings = [each for one in timed for each in one.findings]
    core.found(findings, now)
    if not names or KERNEL_LOG in names:
        timed = (_log(core, time.monotonic() - began), *timed)
    if not names:
        core.examined_by(findings)
    return Looked(tuple(core.conditions().values()), timed)


def _checks(
    subject: Subject, key: bytes, wanted: tuple[str, ...]
) -> tuple[tuple[Timed, ...], Heard]:
    """Nothing is asked while a reset needs the GPU, nor by who may not take the host lock."""
    names = tuple(each for each in wanted if each != KERNEL_LOG)
    if not wanted:
        names = tuple(checks.PASSIVE)
    try:
        with shared(subject.machine.lock) as descriptor:
            if descriptor is None:
                return _locked(names, "a reset needs the GPU"), Heard()
            subject.keep_open = (descriptor,)
            subject.name_gpus(key)
            subject.begin()
            timed = tuple(_timed(subject, name) for name in names)
            return timed, Heard() if wanted else left_overs.listed(subject)
    except OSError as problem:
        return _locked(names, f"{subject.machine.lock}: {problem.strerror}"), Heard()


def _timed(subject: Subject, name: str) -> Timed:
    began = time.monotonic()
    findings = checks.one(name, subject)
    return Timed(name, findings, time.monotonic() - began)


def _log(core: Core, seconds: float) -> Timed:
    """What the kernel log says of each part, as one more check."""
    if "reader:unreadable" in core.trouble:
        said = f"{core.machine.kmsg} cannot be read here"
        return Timed(KERNEL_LOG, (unknown(KERNEL_LOG, HOST, "log:unreadable", said),), seconds)
    standing = core.memory.faults.of_log().faults(core.naming)
    found = tuple(map(kernel_log.finding, standing))
    told = f"{core.memory.cursor.sequence + 1} records of this boot"
    return Timed(KERNEL_LOG, found or (ok(KERNEL_LOG, HOST, told),), seconds)


def _locked(names: tuple[str, ...], why: str) -> tuple[Timed, ...]:
    return tuple(Timed(name, (unknown(name, HOST, "lock:taken", why),), 0.0) for name in names)


def _read(core: Core, now: datetime) -> None:
    """A FIFO is the running agent's: what we took from it, it would never see."""
    path = core.machine.kmsg
    if stat.S_ISFIFO(path.stat().st_mode):
        raise OSError(f"{path} is a FIFO: it cannot be read twice")
    source = open_source(path)
    try:
        while raw := source.take(_BATCH):
            core.take(raw, now)
    finally:
        source.close()
    core.reached_end()
