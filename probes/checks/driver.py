"""Is the driver one whole, and does nobody hang in it?

Its parts must be of one version (an upgrade may be under way: hold). A thread that sleeps
uninterruptibly in the driver over several rounds is a hang, whatever NVML says. A fabric manager
or IMEX daemon that should run and does not keeps the fabric from carrying anything. A driver that
is not there is a mismatch, unless it may still be on its way: one that comes in a container is put
into the kernel minutes after each boot.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.part import HOST
from fleet.pod import hit
from probes import services
from probes.checks.presence import gpus_on_bus
from probes.checks.subject import Subject, fault, ok, unknown
from probes.counters import lasting, seen_again
from probes.nvml.view import DRIVER_NOT_LOADED
from probes.processes import read_process
from probes.settling import DRIVER_ARRIVES
from probes.stuck import Thread, threads_in_driver
from probes.upsets import uptime

SECONDS, ROUNDS = 60.0, 3
"""How long, and over how many rounds, the same thread must be seen asleep: for a moment it is
normal, and after a repair rounds may follow each other within seconds."""
_VERSION = re.compile(r"\b(\d{3}\.\d{2,3}(?:\.\d{2,3})?)\b")
SERVICES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "nvidia-fabricmanager.service": ("nv-fabricmanager", "fabric:manager-gone"),
        "nvidia-imex.service": ("nvidia-imex", "fabric:imex-gone"),
    }
)
"""What a fabric needs, by unit: its program, and the code of its absence. Clouds may run them
outside, so they count only where systemd wants them here."""
RUNS = "fabric:daemon-runs"
_SAY_A_VERSION = {"kernel": "proc/driver/nvidia/version", "module": "sys/module/nvidia/version"}


def check(subject: Subject) -> tuple[Finding, ...]:
    """One finding a trouble, or one ok; nothing where there is no NVIDIA driver at all."""
    root = subject.machine.root
    if not _loaded(subject):
        return (_not_loaded(subject, _gpus(subject)),)
    found = (*_versions(subject), *_stuck(subject), *_services(root))
    return found or (ok(Check.DRIVER, HOST),)


def versions(root: Path) -> dict[str, str]:
    """The version that each part of the driver says; those that say none are left out."""
    found = {}
    for name, path in _SAY_A_VERSION.items():
        try:
            said = _VERSION.search((root / path).read_text("utf-8", "replace"))
        except OSError:
            continue
        if said:
            found[name] = said[1]
    return found


def _loaded(subject: Subject) -> bool:
    """By the kernel's word and by NVML's."""
    if not (subject.machine.root / "proc/driver/nvidia").exists():
        return False
    said = subject.nvml().init
    return said is None or said.code != DRIVER_NOT_LOADED


def _gpus(subject: Subject) -> int:
    """On the bus, and not handed to anybody else's driver; 0 also where no bus can be read."""
    try:
        return len(gpus_on_bus(subject))
    except OSError:
        return 0


def _not_loaded(subject: Subject, gpus: int) -> Finding:
    """An upgrade may be under way, or the driver refuses: either way nothing new may start. Until
    it has come in this boot, or should have, nobody can tell."""
    code = "driver:not-loaded"
    if not gpus:
        return unknown(Check.DRIVER, HOST, code, "no /proc/driver/nvidia, and no GPU on the bus")
    said = f"{gpus} GPUs on the bus, and no driver for them"
    up = uptime(subject.machine.root)
    if up is not None and up < DRIVER_ARRIVES and not subject.naming.gpus:
        said = f"{said} yet, {up:.0f} s after the boot"
        return unknown(Check.DRIVER, HOST, "driver:not-yet", said)
    name = FaultName.CONFIG_MISMATCH
    return fault(Check.DRIVER, HOST, name, code, Advice.HOLD, said, Severity.DEGRADED)


def _versions(subject: Subject) -> Iterator[Finding]:
    said = versions(subject.machine.root)
    if library := subject.nvml().driver:
        said["library"] = library
    if len(set(said.values())) > 1:
        text = ", ".join(f"{name} {version}" for name, version in sorted(said.items()))
        name = FaultName.CONFIG_MISMATCH
        yield fault(
            Check.DRIVER, HOST, name, "driver:versions", Advice.HOLD, text, Severity.DEGRADED
        )


def _stuck(subject: Subject) -> Iterator[Finding]:
    """The same thread (by its start) in every one of the last rounds."""
    asleep = threads_in_driver(subject.machine.root)
    subject.stuck = seen_again(subject.stuck, asleep, subject.at)
    if stays := lasting(subject.stuck, subject.at, ROUNDS, SECONDS):
        first = stays[0]
        text = f"{first.name} has been asleep in {first.where} for {subject.stuck[first][1]} rounds"
        code, name = "driver:stuck-thread", FaultName.DRIVER_HUNG
        pods = _pods(subject.machine.root, stays)
        yield fault(Check.DRIVER, HOST, name, code, Advice.REBOOT, text, pods=pods)


def _pods(root: Path, threads: list[Thread]) -> tuple[str, ...]:
    """Whose the threads are; `/proc` has a folder for a thread as for a process."""
    owners = (read_process(root, int(each.id)) for each in threads)
    return hit((), (each.owner.pod for each in owners if each and each.owner and each.owner.pod))


def _services(root: Path) -> Iterator[Finding]:
    """Wanted by systemd here, and whether there is a process of that name."""
    for unit, (program, code) in SERVICES.items():
        if not services.wanted(root, (unit,)):
            continue
        if services.runs(root, program):
            yield Finding(Check.DRIVER, HOST, Verdict.OK, code=RUNS, evidence=f"{program} runs")
        else:
            name, said = FaultName.FABRIC_NOT_READY, f"{program} does not run"
            yield fault(Check.DRIVER, HOST, name, code, Advice.REBOOT, said)
