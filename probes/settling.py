"""How long after which disturbance a check cannot tell yet. Pure: all times are arguments.

Links train and fabrics form for a while after a boot, a reset, a load of the driver and a change of
MIG mode: 214 of 288 nodes were once called sick at their boot for that. Within the grace such
checks answer *unknown*, neither well nor sick; after it they judge. What is unambiguous (a config
space of all ones, the driver's own wish, a driver that hangs, uncorrected errors) is never delayed:
only answers that settle are listed here. Times are in seconds of a clock that only goes forward.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from fleet.check import Check
from fleet.finding import Finding, Verdict
from fleet.part import HOST, Part
from probes.parts import covers


class Why(StrEnum):
    """What disturbs: in words, as they stand in evidence."""

    BOOT = "the boot"
    RESET = "a reset"
    DRIVER = "the driver was loaded"
    MIG = "MIG was switched"


@dataclass(frozen=True, slots=True)
class Upset:
    """A disturbance: of which part (`host`: all of them), and when."""

    why: Why
    at: float
    part: Part = HOST


GRACE: Mapping[str, Mapping[Why, float]] = MappingProxyType(
    {
        Check.NVLINK: {Why.BOOT: 300.0, Why.DRIVER: 300.0, Why.RESET: 120.0, Why.MIG: 120.0},
        Check.FABRIC: {Why.BOOT: 300.0, Why.DRIVER: 300.0, Why.RESET: 300.0, Why.MIG: 120.0},
        Check.DRIVER: {Why.BOOT: 300.0, Why.DRIVER: 300.0},
        Check.PRESENCE: {Why.DRIVER: 120.0},
        Check.ADAPTERS: {Why.BOOT: 120.0},
    }
)
"""Seconds. Links of NVLink come up within two minutes of whatever took them down; with the whole
machine they wait for switches, their manager and each other, for which the shipped policy lets a
verify wait five. A GPU that was reset must be taken into its fabric by the manager again. Daemons
of the fabric start after the driver, in an order that systemd sees to. A driver that is loaded
takes GPUs one after the other, some seconds each. Adapters wait for their subnet manager's sweep.
"""
WAITS: Mapping[str, str] = MappingProxyType(
    {
        Check.NVLINK: "nvlink:",
        Check.FABRIC: "fabric:",
        Check.DRIVER: "fabric:",
        Check.PRESENCE: "presence:not-in-driver",
        Check.ADAPTERS: "adapters:",
    }
)
"""By check, with what the codes of those findings begin that wait. All others stand at once."""
ABOUT_LINKS = frozenset({Check.NVLINK, Check.FABRIC, Check.ADAPTERS})
"""Checks that ask nothing else: they call nothing well in their grace, either."""
DRIVER_ARRIVES = 900.0
"""Seconds after a boot in which a driver that this boot has not seen yet is awaited: a container
may have to compile it, and a hold of the node could keep that container away."""
LONGEST = max(each for graces in GRACE.values() for each in graces.values())


def settling(check: str, part: Part, upsets: Iterable[Upset], now: float) -> Upset | None:
    """The disturbance that a part still settles from, for a check; the one whose grace is longest.

    One from the future (a clock was set back) grants nothing: it could hide a fault for ever.
    """
    found = [(left, each) for each in upsets if (left := left_of(check, part, each, now)) > 0.0]
    return max(found, key=lambda item: item[0])[1] if found else None


def left_of(check: str, part: Part, upset: Upset, now: float) -> float:
    """Seconds of grace that are left to a part for a check; 0 where there is none."""
    age = now - upset.at
    concerned = HOST in (part, upset.part) or covers(upset.part, part)
    if age < 0.0 or not concerned:
        return 0.0
    return max(0.0, GRACE.get(check, {}).get(upset.why, 0.0) - age)


def longest(
    checks: Iterable[str], parts: Sequence[Part], upsets: Sequence[Upset], now: float
) -> float:
    """Seconds until nothing of these parts settles any more for any of these checks."""
    left = (
        left_of(check, part, each, now) for check in checks for part in parts for each in upsets
    )
    return max(left, default=0.0)


def settled(
    check: str, findings: Iterable[Finding], upsets: Sequence[Upset], now: float
) -> tuple[Finding, ...]:
    """The findings of a check, with what may still settle made unknown."""
    return tuple(_judged(check, each, upsets, now) for each in findings)


def _judged(check: str, finding: Finding, upsets: Sequence[Upset], now: float) -> Finding:
    upset = settling(check, finding.part, upsets, now) if _waits(check, finding) else None
    if upset is None:
        return finding
    said = f"{finding.evidence or 'looked well'}; {now - upset.at:.0f} s after {upset.why}"
    return Finding(check, finding.part, Verdict.UNKNOWN, code=f"{check}:settling", evidence=said)


def _waits(check: str, finding: Finding) -> bool:
    if finding.verdict is Verdict.UNKNOWN or check not in WAITS:
        return False
    well = finding.verdict is Verdict.OK and not finding.code
    return check in ABOUT_LINKS if well else finding.code.startswith(WAITS[check])
