"""Checks that could not tell, for so long that their conditions must not go on saying True.

A moment of silence is normal (a driver that reloads, a reset under way). What this node cannot tell
by its nature, such as how many adapters it was launched with, keeps nothing out of service.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from fleet.check import Check
from fleet.fault import ConditionType, FaultName, camel_case
from fleet.finding import Finding, Verdict

GRACE = 3
"""Rounds in a row in which a check could not tell before its condition says Unknown."""
BY_NATURE = frozenset(
    {
        *("adapters:expectation-unknown", "nvml:not-supported", "presence:none"),
        *("left-overs:namespace", "dcgm:no-watches"),
    }
)
"""Codes of what nobody can tell here: no doubt about the node's health."""
SHOWS_IN: Mapping[str, ConditionType] = MappingProxyType(
    {
        Check.PRESENCE: ConditionType.GPU,
        Check.PCI: ConditionType.GPU,
        Check.RECOVERY_ACTION: ConditionType.GPU,
        Check.MEMORY: ConditionType.MEMORY,
        Check.NVLINK: ConditionType.FABRIC,
        Check.FABRIC: ConditionType.FABRIC,
        Check.PCIE: ConditionType.PCIE,
        Check.THERMAL: ConditionType.THERMAL,
        Check.ADAPTERS: ConditionType.NETWORK,
        Check.DRIVER: ConditionType.DRIVER,
        Check.HOST: ConditionType.HOST,
        Check.LEFT_OVERS: ConditionType.DRIVER,
        Check.DCGM: ConditionType.PROBES,
        Check.SETTINGS: ConditionType.DRIVER,
    }
)


@dataclass(slots=True)
class Untold:
    """How many rounds in a row each check could not tell, and what it said last."""

    _rounds: Counter[str] = field(default_factory=Counter)
    _codes: dict[str, str] = field(default_factory=dict)

    def round(self, findings: Sequence[Finding]) -> None:
        """Take in one round of all checks."""
        untold = {each.check: each.code for each in findings if _could_not_tell(each)}
        self._rounds = Counter({check: self._rounds[check] + 1 for check in untold})
        self._codes = untold

    def conditions(self) -> Mapping[str, str]:
        """Condition types that cannot be worded as True, with the reason."""
        return {
            SHOWS_IN[check].value: camel_case(self._codes[check].replace(":", "-"))
            for check, rounds in self._rounds.items()
            if rounds >= GRACE and check in SHOWS_IN
        }


def proves(finding: Finding) -> bool:
    """Whether a finding is what a sound node says. A sensor of ours that is silent, or a second
    witness that could not tell, is no doubt about the node."""
    if finding.fault is FaultName.MONITOR_SILENT:
        return True
    untold = finding.verdict is Verdict.UNKNOWN
    beside = untold and finding.check == Check.DCGM
    return finding.verdict is Verdict.OK or beside or finding.code in BY_NATURE


def _could_not_tell(finding: Finding) -> bool:
    return finding.verdict is Verdict.UNKNOWN and finding.code not in BY_NATURE
