"""The faults that stand on this node, and what ends each of them. Pure: time is an argument.

A fault of the log is an event: it ends with a new boot, with a reset or a passed verify of its part
that is later than its last line (sequence numbers, not clocks), or with the driver's word that
nothing is to be done. A fault that a check reads as a level ends when the same check has passed
often enough. What DCGM says ends with a boot or a repair, too: who set its watches may be gone, and
what it still sees it says again. What only a step can look for (an active check) is found by one,
and ends when the same check passes in a later one; the word of a trial in pairs ends with a boot,
too, since no node can look again alone. Silence ends nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from fleet.check import FOUND_BY_STEPS, PAIRS, Check
from fleet.fault import Advice, Fault, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.part import HOST, Part
from fleet.pod import hit
from probes.evidence import EXPLAINABLE, EXPLAINED_BY, Claim
from probes.parts import Naming, covers, owner_of

CLAIM_LIMIT = 512
"""Claims kept apart; further ones are counted together as `<kind>:more` of the host."""
PASSES = 2
"""How often in a row a check must pass before the fault that it found ends."""
STRIKES: Mapping[FaultName, int] = MappingProxyType(
    {
        FaultName.DRIVER_HUNG: 2,
        FaultName.NVLINK_ERROR: 2,
        FaultName.FABRIC_NOT_READY: 3,
        FaultName.NIC_DEGRADED: 2,
        FaultName.PCIE_DEGRADED: 2,
        FaultName.THERMAL: 3,
        FaultName.POWER: 2,
        FaultName.HOST_DEGRADED: 2,
        FaultName.MONITOR_SILENT: 2,
    }
)
"""How often in a row a check must find a fault before it stands, where that is more than once: a
driver stalls for a moment, one link trains anew, heat and clocks waver. What a boot, a reset, a
driver's load or a change of MIG does to links is not even counted (`probes.settling`). What is
unambiguous stands at once."""
STRIKE_GAP = timedelta(seconds=30)
"""Strikes come no faster on average, however fast rounds follow each other after a repair: just
then the driver reloads and links train."""
PATIENCE: Mapping[str, int] = MappingProxyType({Check.DCGM: 3})
"""The same by check, where it is more: what DCGM calls a failure may be one error in a minute."""
LASTING: Mapping[str, int] = MappingProxyType({"driver:not-loaded": 3})
"""The same by code: who renews a driver takes it out first."""

ADVICE_RISING = (
    Advice.NONE,
    Advice.HOLD,
    Advice.DRAIN,
    Advice.RESET_GPU,
    Advice.REBOOT,
    Advice.REPLACE,
    Advice.HAND_OFF,
)
SEVERITY_RISING = (
    Severity.INFO,
    Severity.WARNING,
    Severity.UNKNOWN,
    Severity.DEGRADED,
    Severity.FATAL,
)
"""An unknown one is held, so it is worse than a warning."""


@dataclass(slots=True)
class Standing:
    """A claim that stands: how often it was made, since when, and its last line.

    `source` is the check that made it, empty for the log; `passes` counts that check's passes.
    `pods` are those that it hit, as far as it can be told.
    """

    claim: Claim
    count: int
    since: datetime
    sequence: int
    source: str = ""
    passes: int = 0
    pods: tuple[str, ...] = ()


Key = tuple[str, Part, FaultName, str, str]


@dataclass(slots=True)
class FaultSet:
    """What stands, by source, part, fault, code and detail."""

    standing: dict[Key, Standing] = field(default_factory=dict)

    def claim(self, claim: Claim, sequence: int, now: datetime, pods: tuple[str, ...] = ()) -> None:
        """The log claims a fault, in its record `sequence`, of a process of `pods`."""
        if claim.verdict:
            self._drop(
                lambda old: (
                    old.claim.verdict
                    and old.claim.part == claim.part
                    and old.claim.sub != claim.sub
                )
            )
        self._count(_key("", claim), Standing(claim, 1, now, sequence, pods=pods))

    def clear(self, part: Part, through: int | None = None) -> None:
        """End the log's faults of a part whose last line is not later than record `through`."""
        self._drop(
            lambda old: (
                not old.source
                and covers(part, old.claim.part)
                and (through is None or old.sequence <= through)
            )
        )

    def new_boot(self) -> None:
        """End every fault of the log, of DCGM and of trials: they were of another boot."""
        self._drop(lambda old: old.source in ("", Check.DCGM, PAIRS))

    def lapse(self, part: Part, at: datetime) -> None:
        """A part was repaired or proven then: what DCGM began to say before is believed no more."""
        self._drop(
            lambda old: (
                old.source == Check.DCGM and covers(part, old.claim.part) and old.since <= at
            )
        )

    def judge(self, findings: Sequence[Finding], now: datetime) -> None:
        """Take in one round of checks; unknown neither claims nor ends anything."""
        for finding in findings:
            if finding.verdict is Verdict.FAULT and finding.fault is not None:
                self._found(finding, finding.fault, now)
        for check in {each.check for each in findings}:
            self._passed(check, [each for each in findings if each.check == check])

    def find(self, check: str, claim: Claim, at: datetime) -> None:
        """A step's active check found this then; told again it is the same finding."""
        key = _key(check, claim)
        if key in self.standing or len(self.standing) < CLAIM_LIMIT:
            self.standing.setdefault(key, Standing(claim, 1, at, -1, check))

    def prove(self, part: Part, checks: Sequence[str], at: datetime) -> None:
        """These checks of a step passed for a part then: what they alone can find ends."""
        self._drop(
            lambda old: (
                old.source in FOUND_BY_STEPS
                and old.source in checks
                and covers(part, old.claim.part)
                and old.since <= at
            )
        )

    def found_by(self, checks: Sequence[str], parts: Sequence[Part]) -> tuple[str, ...]:
        """Those of the checks by which something stands on one of the parts or on the host."""
        mine = [
            old.source
            for old in self.standing.values()
            if old.claim.part == HOST or any(covers(scope, old.claim.part) for scope in parts)
        ]
        return tuple(each for each in checks if each in mine)

    def said_by(self, check: str) -> tuple[Finding, ...]:
        """What stands of a check, as it would say it again."""
        claims = [old.claim for old in self.standing.values() if old.source == check]
        return tuple(
            Finding(
                *(check, each.part, Verdict.FAULT, each.fault, each.code),
                *(each.advice, each.severity, "it was said in this boot, and stands"),
            )
            for each in claims
        )

    def of_log(self) -> "FaultSet":
        """Only what the log claims."""
        return FaultSet({key: old for key, old in self.standing.items() if not old.source})

    def restore(self, old: Standing) -> None:
        """Take back what was remembered."""
        self.standing[_key(old.source, old.claim)] = old

    def rename(self, naming: Naming) -> None:
        """Give parts that were named by address their index, now that the driver tells it."""
        for key, old in list(self.standing.items()):
            owner = owner_of(old.claim.part)
            address = owner.removeprefix("pci:")
            if owner == address or address not in naming.gpus:
                continue
            part = Part(old.claim.part.replace(owner, f"gpu:{naming.gpus[address].index}"))
            del self.standing[key]
            self._merge(replace(old, claim=replace(old.claim, part=part)))

    @property
    def levels(self) -> bool:
        """Whether a fault stands that only its check, run by the agent, can end."""
        return any(
            old.source and old.source not in FOUND_BY_STEPS for old in self.standing.values()
        )

    @property
    def waning(self) -> frozenset[str]:
        """The checks that have passed since they found something, and must only pass again."""
        return frozenset(old.source for old in self.standing.values() if old.source and old.passes)

    def faults(self, naming: Naming) -> tuple[Fault, ...]:
        """One a part and kind, worst first."""
        groups: dict[tuple[Part, FaultName], list[Standing]] = {}
        for old in filter(_stands, self.standing.values()):
            groups.setdefault(self._attributed(old), []).append(old)
        ranked = sorted(groups.items(), key=lambda item: (_rank(item[1]), str(item[0])))
        return tuple(_fault(part, name, group, naming) for (part, name), group in ranked)

    def _attributed(self, old: Standing) -> tuple[Part, FaultName]:
        """The driver's wish for a reset belongs to the memory or link fault that explains it."""
        claim = old.claim
        if claim.verdict and claim.sub.isdigit() and int(claim.sub) in EXPLAINABLE:
            owner = owner_of(claim.part)
            others = [each.claim for each in self.standing.values() if not each.claim.verdict]
            mine = [each for each in others if owner_of(each.part) == owner]
            for name in EXPLAINED_BY:
                for each in mine:
                    if each.fault is name:
                        return each.part, name
        return claim.part, claim.fault

    def _found(self, finding: Finding, fault: FaultName, now: datetime) -> None:
        """The driver's own wish, wherever it was read, may be explained by another fault."""
        verdict = finding.code.startswith(f"{Check.RECOVERY_ACTION}:")
        wish = finding.code.rpartition(":")[2] if verdict else ""
        claim = Claim(
            finding.part, fault, finding.code, finding.advice, finding.severity, wish, verdict
        )
        new = Standing(claim, 1, now, -1, finding.check, pods=finding.pods)
        self._count(_key(finding.check, claim), new)

    def _passed(self, check: str, findings: Sequence[Finding]) -> None:
        """What a check said of the host ends when all that it says is well."""
        well = [each.part for each in findings if each.verdict is Verdict.OK]
        if len(well) == len(findings):
            well.append(HOST)
        for key, old in list(self.standing.items()):
            if old.source == check and any(_speaks_for(part, old.claim.part) for part in well):
                old.passes += 1
                if old.passes >= PASSES or not _stands(old):
                    del self.standing[key]

    def _count(self, key: Key, new: Standing) -> None:
        old = self.standing.get(key)
        if old is None and len(self.standing) >= CLAIM_LIMIT:
            new.claim = _folded(new.claim)
            key = _key(new.source, new.claim)
            old = self.standing.get(key)
        if old is None:
            self.standing[key] = new
        else:
            old.count += _stands(old) or _apart(old, new.since)
            old.claim, old.passes = new.claim, 0
            old.sequence = max(old.sequence, new.sequence)
            old.pods = hit(old.pods, new.pods)

    def _merge(self, moved: Standing) -> None:
        old = self.standing.get(_key(moved.source, moved.claim))
        if old is not None:
            moved.count += old.count
            moved.since = min(moved.since, old.since)
            moved.sequence = max(moved.sequence, old.sequence)
            moved.pods = hit(old.pods, moved.pods)
        self.restore(moved)

    def _drop(self, ended: Callable[[Standing], bool]) -> None:
        self.standing = {key: old for key, old in self.standing.items() if not ended(old)}


def strikes(check: str, fault: FaultName, code: str = "") -> int:
    """How often in a row a check must find a fault before it stands."""
    patience = 1 if fault is FaultName.MONITOR_SILENT else PATIENCE.get(check, 1)
    return max(STRIKES.get(fault, 1), patience, LASTING.get(code, 1))


def _speaks_for(well: Part, part: Part) -> bool:
    """A GPU that is well has no link or instance that is not; a host says nothing of its GPUs."""
    return well == part or (well == owner_of(part) and well != HOST)


def _stands(old: Standing) -> bool:
    """Whether it was seen often enough; what the log or the driver itself says, it says once, and
    an active check takes its time to be sure."""
    unambiguous = old.source in ("", *FOUND_BY_STEPS) or old.claim.verdict
    return unambiguous or old.count >= strikes(old.source, old.claim.fault, old.claim.code)


def _apart(old: Standing, now: datetime) -> bool:
    """Whether one more strike may count yet; a clock that went back must not hide a fault."""
    age = now - old.since
    return age >= old.count * STRIKE_GAP or age < timedelta(0)


def _key(source: str, claim: Claim) -> Key:
    return source, claim.part, claim.fault, claim.code, claim.sub


def _folded(claim: Claim) -> Claim:
    kind = claim.code.partition(":")[0]
    return Claim(HOST, claim.fault, f"{kind}:more", claim.advice, claim.severity)


def _rank(group: Sequence[Standing]) -> tuple[int, int]:
    """Sorts worst first."""
    severity = max(SEVERITY_RISING.index(old.claim.severity) for old in group)
    return -severity, -max(ADVICE_RISING.index(old.claim.advice) for old in group)


def _first(old: Standing) -> tuple[datetime, str]:
    return old.since, old.claim.code


def _fault(part: Part, name: FaultName, group: list[Standing], naming: Naming) -> Fault:
    """The code is that of the worst line; the driver's verdict names it only where it is alone."""
    first = min(
        group, key=lambda old: (old.claim.verdict, *_rank([old]), old.since, old.claim.code)
    )
    return Fault(
        part=part,
        name=name,
        code=first.claim.code,
        advice=max((old.claim.advice for old in group), key=ADVICE_RISING.index),
        count=sum(old.count for old in group),
        since=min(old.since for old in group),
        id=naming.id(part),
        pods=hit((), (pod for old in sorted(group, key=_first) for pod in old.pods)),
    )
