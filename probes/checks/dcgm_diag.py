"""What does DCGM's own diagnosis say? Run by an engine that is there already, level by level.

Active: it takes the GPUs for itself, so only a verify or a person runs it, never the agent. Ended
early, it may leave clocks and modes changed, so that is said and proves nothing. What fails because
of how the node is set up says nothing of its hardware, and is unknown.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.checks import dcgm_engine as engine
from probes.checks.compute import unfit
from probes.checks.dcgm_engine import Found
from probes.checks.subject import Subject, fault, hung, ok, unknown
from probes.child import Ended
from probes.dcgm import diag
from probes.dcgm.diag import NOT_GPU, Diag, Outcome, Status
from probes.parts import covers

LEVEL = "GPUMEND_DCGM_DIAG_LEVEL"
LIMITS: Mapping[int, float] = MappingProxyType({1: 120.0, 2: 600.0, 3: 1_800.0})
"""Seconds by level: twice and more of what they are said to take (seconds, 2 and 15 minutes)."""
UNLOADED = 1
"""The level that puts no load on GPUs; any other is run only where nobody uses them."""
GRACE = 30.0
"""Seconds in which dcgmi, once asked to end, stops the diagnosis in the engine (it waits 25)."""
LEAST = 5.0
"""Seconds that must be left, beside the grace, to begin at all."""

_CONFIG, _RESET, _ISOLATE = 5, 6, 2
ADVICE: Mapping[int, Advice] = MappingProxyType({_RESET: Advice.RESET_GPU, _ISOLATE: Advice.DRAIN})
"""DCGM's severities that ask for more than a hold."""
CATEGORIES: Mapping[int, FaultName] = MappingProxyType(
    {
        1: FaultName.SLOW,
        2: FaultName.SLOW,
        9: FaultName.THERMAL,
        10: FaultName.UNCONTAINED_MEMORY,
        11: FaultName.NVLINK_ERROR,
        12: FaultName.FABRIC_NOT_READY,
        13: FaultName.PCIE_DEGRADED,
        14: FaultName.POWER,
    }
)
"""DCGM's error categories that name a kind of fault; software (3-8) and others (15, 16) do not."""
TESTS: Mapping[str, FaultName] = MappingProxyType(
    {
        "memory": FaultName.UNCONTAINED_MEMORY,
        "gpu memory": FaultName.UNCONTAINED_MEMORY,
        "memtest": FaultName.UNCONTAINED_MEMORY,
        "page retirement/row remap": FaultName.CONTAINED_MEMORY,
        "inforom": FaultName.INFOROM,
        "pcie": FaultName.PCIE_DEGRADED,
        "memory bandwidth": FaultName.SLOW,
        "sm stress": FaultName.SLOW,
        "targeted stress": FaultName.SLOW,
        "targeted power": FaultName.POWER,
    }
)
"""Where there is no category: by the test's name. One not listed is a code in no table."""
SETTINGS = frozenset(
    {
        *("denylist", "nvml library", "cuda main library", "cuda toolkit library"),
        *("permissions and os blocks", "persistence mode", "environment variables"),
        *("graphics processes", "software"),
    }
)
"""Tests of how the node is set up."""


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings of every GPU; unknown where nobody can run it, or it was not run to its end."""
    level = _level()
    if level is None:
        said = f"{LEVEL} is 1, 2 or 3, not {os.environ[LEVEL][:40]!r}"
        return (_unknown("configuration", said),)
    if not engine.installed(subject):
        return (_unknown("no-dcgm", "no dcgmi on this machine"),)
    found = engine.find(subject)
    if not isinstance(found, Found):
        said = "no DCGM engine answers, and a diagnosis without one would start its own"
        return (_unknown("no-engine", said),)
    found = Found({number: pci for number, pci in found.gpus.items() if _mine(subject, pci)})
    if not found.gpus:
        return (_unknown("no-gpu", "DCGM lists none of the GPUs that are asked about"),)
    unfit_ = tuple(_unfit(subject, found)) if level > UNLOADED else ()
    if unfit_:
        return unfit_
    limit = subject.within(LIMITS[level] + GRACE) - GRACE
    if limit < LEAST:
        return (_unknown("no-time", f"{max(limit, 0):.0f} s are left"),)
    ended = engine.diagnose(subject, found, level, limit, GRACE)
    return _told(subject, found, ended, level)


def _mine(subject: Subject, pci: str) -> bool:
    """Others may have work on the GPUs that nobody asked about."""
    return any(covers(scope, subject.naming.gpu(pci)) for scope in subject.scope)


def _unfit(subject: Subject, found: Found) -> Iterator[Finding]:
    """Why GPUs may not be put to a test now: as NVML sees them, each has to be idle."""
    seen = subject.nvml()
    known = {each.pci: each for each in seen.gpus if each.handle is None}
    for pci in found.gpus.values():
        if pci not in known:
            said = "NVML does not tell whether somebody uses it"
            why_not: tuple[str, str] | None = ("dcgm-diag:use-unknown", said)
        else:
            why_not = unfit(known[pci], Check.DCGM_DIAG)
        if why_not:
            yield unknown(Check.DCGM_DIAG, subject.naming.gpu(pci), *why_not)


def _level() -> int | None:
    said = os.environ.get(LEVEL, "1").strip()
    return int(said) if said in ("1", "2", "3") else None


def _told(subject: Subject, found: Found, ended: Ended, level: int) -> tuple[Finding, ...]:
    if ended.hung and ended.status is None:
        return (hung(Check.DCGM_DIAG, "dcgmi diag"),)
    if ended.hung:
        said = f"level {level} was ended at its limit: clocks and modes may be left changed"
        return (_unknown("cut-off", said),)
    if not isinstance(engine.find(subject), Found):
        return (_unknown("engine-gone", "the engine went away during the diagnosis"),)
    result = diag.read(ended.output)
    if result.error or not result.outcomes:
        said = result.error or f"exit {ended.status}: {ended.output} {ended.errors}"
        return (_unknown("no-result", said),)
    return tuple(_judged(subject, found, result, ended.status))


def _judged(subject: Subject, found: Found, said: Diag, status: int | None) -> Iterator[Finding]:
    complaints = [_complaint(subject, found, each) for each in said.outcomes if _complains(each)]
    yield from complaints
    if status != 0 and not complaints:
        yield _unknown("exit", f"every test passed, and yet it ended with {status}")
        return
    accused = {each.part for each in complaints}
    if HOST in accused:
        return
    for part, number in _parts(subject, found).items():
        if part not in accused:
            yield _passed(part, [each for each in said.outcomes if each.gpu in ("", number)])


def _complains(outcome: Outcome) -> bool:
    return outcome.status not in (Status.PASS, Status.SKIP)


def _parts(subject: Subject, found: Found) -> Mapping[Part, str]:
    """Every GPU that DCGM or the driver has, with DCGM's number, empty where it has none."""
    mine = [pci for pci in subject.naming.gpus if _mine(subject, pci)]
    named = {subject.naming.gpu(pci): "none" for pci in mine}
    return named | {subject.naming.gpu(pci): number for number, pci in found.gpus.items()}


def _passed(part: Part, outcomes: Iterable[Outcome]) -> Finding:
    passed = [each.test for each in outcomes if each.status is Status.PASS]
    if passed:
        return ok(Check.DCGM_DIAG, part, f"passed: {', '.join(passed)}")
    return unknown(Check.DCGM_DIAG, part, "dcgm-diag:not-run", "no test passed or failed on it")


def _complaint(subject: Subject, found: Found, outcome: Outcome) -> Finding:
    pci = found.gpus.get(outcome.gpu)
    part = HOST if pci is None else subject.naming.gpu(pci)
    about = f"GPU {outcome.gpu} of DCGM, " if outcome.gpu not in ("", NOT_GPU) else ""
    said = f"{about}{outcome.test}: {outcome.status.value}; {outcome.said}"
    if outcome.status is not Status.FAIL:
        word = outcome.status.value.replace(" ", "-")
        return unknown(Check.DCGM_DIAG, part, f"dcgm-diag:{word}", said)
    if _of_settings(outcome):
        return unknown(Check.DCGM_DIAG, part, "dcgm-diag:settings", said)
    name = _named(outcome)
    advice = ADVICE.get(outcome.severity or 0, Advice.HOLD)
    code = f"dcgm-diag:{_slug(outcome.test)}"
    return fault(Check.DCGM_DIAG, part, name, code, advice, said, Severity.DEGRADED)


def _of_settings(outcome: Outcome) -> bool:
    if outcome.severity:
        return outcome.severity == _CONFIG
    return _plain(outcome.test) in SETTINGS


def _named(outcome: Outcome) -> FaultName:
    if outcome.category:
        return CATEGORIES.get(outcome.category, FaultName.UNKNOWN_CODE)
    return TESTS.get(_plain(outcome.test), FaultName.UNKNOWN_CODE)


def _plain(test: str) -> str:
    return " ".join(test.lower().replace("_", " ").split())


def _slug(test: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in _plain(test)).split())[:40]


def _unknown(word: str, said: str) -> Finding:
    return unknown(Check.DCGM_DIAG, HOST, f"dcgm-diag:{word}", said)
