"""Jobs that have nothing to do with each other and fail on one GPU: then it may be the GPU. Pure.

One job's fault is its own, as often as it comes. Which jobs are unrelated is said by decision 27:
pods of different namespaces; inside of one, nobody here can tell. Times are the kernel's own, in
seconds since the boot, and a boot or a repair begins anew.
"""

from dataclasses import dataclass, field, replace

from fleet.fault import Advice, FaultName, Severity
from fleet.part import Part
from fleet.pod import hit
from probes.evidence import Claim
from probes.parts import covers

WITHIN = 86_400.0
"""Seconds in which two jobs must fail: a sick GPU fails every job, and a day has room for two."""
APART = 60.0
"""Seconds that must lie between the two: jobs that share a GPU at one time fall together."""
CONSEQUENCES = frozenset({"xid:43", "xid:45", "xid:174"})
"""What the driver prints when it takes a channel away: after an error with a line of its own, and
for every process that is killed."""
LIMIT = 256
"""Namespaces and GPUs remembered together; those that failed longest ago go first."""
CODE = "application:unrelated-jobs"


@dataclass(frozen=True, slots=True)
class JobFailure:
    """Jobs of a namespace failed on a GPU: at first and last (seconds since boot), in which pod and
    which record of the log at last."""

    gpu: Part
    namespace: str
    pod: str
    first: float
    last: float
    sequence: int

    def apart(self, at: float) -> bool:
        """Whether one of these is old enough, and young enough, to tell about a failure now."""
        return any(APART <= at - each <= WITHIN for each in (self.first, self.last))


@dataclass(slots=True)
class JobFailures:
    """Who failed where in this boot."""

    seen: dict[tuple[Part, str], JobFailure] = field(default_factory=dict)

    def add(self, new: JobFailure, code: str) -> Claim | None:
        """A job failed with this code; the claim against its GPU, where an unrelated one had."""
        if code in CONSEQUENCES or not new.gpu.startswith(("gpu:", "pci:")):
            return None
        others = [each for each in self.seen.values() if each.gpu == new.gpu]
        unrelated = [each for each in others if each.namespace != new.namespace]
        self._remember(new)
        if not any(each.apart(new.last) for each in unrelated):
            return None
        name, advice = FaultName.UNKNOWN_CODE, Advice.HOLD
        return Claim(new.gpu, name, CODE, advice, Severity.DEGRADED)

    def pods(self, gpu: Part) -> tuple[str, ...]:
        """The pods that failed on a GPU, the latest last."""
        mine = [each for each in self.seen.values() if each.gpu == gpu]
        return hit((), (each.pod for each in sorted(mine, key=lambda each: each.last)))

    def forget(self, part: Part, through: int | None = None) -> None:
        """A part was repaired or proven after this record: what failed there before is over."""
        self.seen = {
            key: each
            for key, each in self.seen.items()
            if not covers(part, each.gpu) or (through is not None and each.sequence > through)
        }

    def _remember(self, new: JobFailure) -> None:
        """The first that may still count, and the last: whatever lies between says no more."""
        before = self.seen.pop((new.gpu, new.namespace), None)
        if before is not None:
            fresh = [each for each in (before.first, before.last) if new.last - each <= WITHIN]
            new = replace(new, first=min([*fresh, new.last]))
        self.seen[new.gpu, new.namespace] = new
        if len(self.seen) > LIMIT:
            del self.seen[next(iter(self.seen))]
