"""Does every GPU still answer on the PCI bus? The first word of its config space says so.

All ones is what the bus reads when nobody answers. It works when the driver hangs, so it is the
independent witness for a lost GPU.
"""

from fleet.check import Check
from fleet.fault import Advice, FaultName
from fleet.finding import Finding
from fleet.part import HOST
from probes.checks.presence import gpus_on_bus
from probes.checks.subject import Subject, fault, hung, ok, unknown
from probes.parts import short_address

_GONE = b"\xff\xff\xff\xff"


def check(subject: Subject) -> tuple[Finding, ...]:
    """One finding a GPU on the bus, or one about the host where none can be told."""
    try:
        gpus = gpus_on_bus(subject)
    except OSError as problem:
        return (unknown(Check.PCI, HOST, "pci:unreadable", str(problem)),)
    if not gpus:
        return (unknown(Check.PCI, HOST, "pci:none", "no GPU on the PCI bus"),)
    seen = subject.read("sys/bus/pci/devices/*/config", size=len(_GONE))
    if seen.hung:
        return (hung(Check.PCI, "reading PCI config space"),)
    words = {_address(path.parent.name): word for path, word in seen.contents.items()}
    return tuple(_finding(subject, pci, words.get(pci, b"")) for pci in sorted(gpus))


def _finding(subject: Subject, pci: str, word: bytes) -> Finding:
    part = subject.naming.gpu(pci)
    if word == _GONE:
        evidence = f"config space of {pci} reads all ones"
        return fault(Check.PCI, part, FaultName.GPU_LOST, "pci:all-ones", Advice.REBOOT, evidence)
    if len(word) < len(_GONE):
        return unknown(Check.PCI, part, "pci:unreadable", f"config space of {pci}")
    return ok(Check.PCI, part)


def _address(name: str) -> str:
    try:
        return short_address(name)
    except ValueError:
        return name
