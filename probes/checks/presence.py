"""Is every GPU there? The PCI bus, the driver's own list of this boot, and NVML must agree.

On the bus but not with the driver, or known in this boot and on the bus no more: lost. A GPU that
never appeared in this boot is missed by the count that the node should have (`expectations`). A
library that is not there, while the driver is, is our own sensor's trouble.
"""

from collections.abc import Iterator

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST
from probes import expectations
from probes.checks import nvidia_smi
from probes.checks.refusals import refused, unusable
from probes.checks.subject import Subject, fault, ok, unknown
from probes.parts import short_address

_ADDRESS = "pci.bus_id"
_NVIDIA = "0x10de"
_GPU_CLASSES = ("0x0300", "0x0302")


def check(subject: Subject) -> tuple[Finding, ...]:
    """One finding a GPU, or one about the host where none can be told."""
    try:
        on_bus = gpus_on_bus(subject)
    except OSError as problem:
        return (unknown(Check.PRESENCE, HOST, "pci:unreadable", str(problem)),)
    subject.counts[expectations.GPUS] = len(on_bus)
    return (*_counted(subject, len(on_bus)), *_each(subject, on_bus))


def _counted(subject: Subject, count: int) -> tuple[Finding, ...]:
    """Fewer on the bus than the node should have; silent where nobody said how many those are."""
    wanted = expectations.expect(subject.machine, expectations.GPUS)
    if wanted.least is None or count >= wanted.least:
        return ()
    evidence = f"{count} GPUs on the bus, {wanted.least} expected ({wanted.source})"
    code, advice = "presence:missing", Advice.REBOOT
    return (fault(Check.PRESENCE, HOST, FaultName.GPU_LOST, code, advice, evidence),)


def _each(subject: Subject, on_bus: frozenset[str]) -> tuple[Finding, ...]:
    expected = sorted(on_bus | set(subject.naming.gpus))
    if not expected:
        said = "no GPU on the PCI bus, and none was seen in this boot"
        return (unknown(Check.PRESENCE, HOST, "presence:none", said),)
    if not subject.nvml().unheard:
        return _by_nvml(subject, expected, on_bus)
    table = nvidia_smi.query(Check.PRESENCE, subject, (_ADDRESS, "index"))
    untold = (*table.findings, *_library(subject, on_bus))
    if not table.rows and table.findings:
        return (*_off_bus(subject, expected, on_bus), *untold)
    found = [_finding(subject, pci, on_bus, frozenset(table.rows)) for pci in expected]
    return (*found, *untold)


def _library(subject: Subject, on_bus: frozenset[str]) -> Iterator[Finding]:
    """Without NVML we see less of the node; that is our trouble, and not the node's."""
    loaded = (subject.machine.root / "proc/driver/nvidia").exists()
    if on_bus and loaded and subject.nvml().missing:
        name, code = FaultName.MONITOR_SILENT, "nvml:library-missing"
        said = "libnvidia-ml.so.1 is not found, though the driver is loaded: asking nvidia-smi"
        yield fault(Check.PRESENCE, HOST, name, code, Advice.NONE, said, Severity.WARNING)


def _by_nvml(subject: Subject, expected: list[str], on_bus: frozenset[str]) -> tuple[Finding, ...]:
    """A handle that NVML refuses belongs to a GPU on the bus that no other handle is of."""
    seen = subject.nvml()
    silent = unusable(Check.PRESENCE, seen)
    if silent:
        return (*_off_bus(subject, expected, on_bus), *silent)
    answering = frozenset(gpu.pci for gpu in seen.gpus if gpu.pci)
    refusals = [gpu.handle for gpu in seen.gpus if gpu.handle]
    mute = [pci for pci in expected if pci in on_bus and pci not in answering]
    if refusals and len(mute) == len(refusals) == 1:
        part = subject.naming.gpu(mute[0])
        told = refused(Check.PRESENCE, part, refusals[0], "its handle")
        others = [each for each in expected if each not in mute]
        return (told, *(_finding(subject, each, on_bus, answering) for each in others))
    found = [_finding(subject, pci, on_bus, answering) for pci in expected]
    return (*found, *(refused(Check.PRESENCE, HOST, each, "a handle") for each in refusals))


def gpus_on_bus(subject: Subject) -> frozenset[str]:
    """Addresses of the NVIDIA GPUs in sysfs; raises OSError where there is no PCI bus to read."""
    found = set()
    for device in (subject.machine.root / "sys/bus/pci/devices").iterdir():
        try:
            vendor = (device / "vendor").read_text("ascii").strip()
            kind = (device / "class").read_text("ascii").strip()
            if vendor == _NVIDIA and kind.startswith(_GPU_CLASSES):
                found.add(short_address(device.name))
        except (OSError, ValueError):
            continue
    return frozenset(found)


def _off_bus(subject: Subject, expected: list[str], on_bus: frozenset[str]) -> list[Finding]:
    return [_lost(subject, pci, "off-bus") for pci in expected if pci not in on_bus]


def _finding(
    subject: Subject, pci: str, on_bus: frozenset[str], answering: frozenset[str]
) -> Finding:
    if pci not in on_bus:
        return _lost(subject, pci, "off-bus")
    if pci not in answering:
        return _lost(subject, pci, "not-in-driver")
    return ok(Check.PRESENCE, subject.naming.gpu(pci))


def _lost(subject: Subject, pci: str, word: str) -> Finding:
    part = subject.naming.gpu(pci)
    evidence = f"{pci} is {word.replace('-', ' ')}"
    code = f"presence:{word}"
    return fault(Check.PRESENCE, part, FaultName.GPU_LOST, code, Advice.REBOOT, evidence)
