"""The checks of a node: one module a source, each with three answers (ok, fault, unknown).

A check never raises and never hangs: a tool that is missing, mute, or says what nobody understands
is `unknown`, one that does not come back is the fault `driver-hung`. None of it reads as healthy.
What settles slowly is unknown for a while (`probes.settling`), whatever a check makes of it.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from fleet.check import PAIRS, Check
from fleet.finding import Finding, Verdict
from fleet.part import HOST
from probes.checks import (
    adapters,
    all_reduce,
    compute,
    dcgm,
    dcgm_diag,
    driver,
    fabric,
    host,
    left_overs,
    memory,
    nvlink,
    pairs,
    pci,
    pcie,
    presence,
    recovery_action,
    settings,
    thermal,
)
from probes.checks.subject import Subject
from probes.settling import GRACE, settled

PASSIVE: Mapping[str, Callable[[Subject], tuple[Finding, ...]]] = MappingProxyType(
    {
        Check.PRESENCE: presence.check,
        Check.PCI: pci.check,
        Check.RECOVERY_ACTION: recovery_action.check,
        Check.MEMORY: memory.check,
        Check.NVLINK: nvlink.check,
        Check.FABRIC: fabric.check,
        Check.PCIE: pcie.check,
        Check.THERMAL: thermal.check,
        Check.ADAPTERS: adapters.check,
        Check.DRIVER: driver.check,
        Check.HOST: host.check,
        Check.LEFT_OVERS: left_overs.check,
        Check.DCGM: dcgm.check,
        Check.SETTINGS: settings.check,
    }
)
"""The checks that ask the machine itself, now; `kernel-log` reads what it said before."""

ACTIVE: Mapping[str, Callable[[Subject], tuple[Finding, ...]]] = MappingProxyType(
    {
        Check.COMPUTE: compute.check,
        Check.ALL_REDUCE: all_reduce.check,
        Check.DCGM_DIAG: dcgm_diag.check,
    }
)
"""The checks that put load on GPUs that nobody uses; never among the agent's rounds."""


def run(names: Iterable[str], subject: Subject) -> tuple[Finding, ...]:
    """Every finding of the named checks; a name that nobody here knows is unknown, not skipped."""
    subject.begin()
    return tuple(found for name in names for found in one(name, subject))


def one(name: str, subject: Subject) -> tuple[Finding, ...]:
    """The findings of one check of a round that has begun."""
    check = PASSIVE.get(name) or ACTIVE.get(name) or (pairs.check if name == PAIRS else None)
    if check is None:
        said = f"this version has no check {name!r}"
        return (Finding(name, HOST, Verdict.UNKNOWN, code="check:none", evidence=said),)
    found = check(subject)
    return settled(name, found, subject.upsets(), subject.at) if name in GRACE else found
