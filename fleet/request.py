"""What a step is asked to do: everything an activity needs, decided before it starts.

The operation id and the boot id are in the history before the call, so that whoever repeats it
can look whether it happened instead of doing it twice.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleet.fault import Fault
from fleet.node import NodeIdentity
from fleet.part import Part
from fleet.step import Step


@dataclass(frozen=True, slots=True)
class StepRequest:
    """One step on one node.

    `operation` names this attempt in Pods, provider calls and the audit. `boot_id` is the boot that
    the decision rested on, `faults` what justifies it; an activity that sees otherwise refuses.
    `deadline` is absolute and only ever tightens. `checks` and `settle` are a verify's (which
    checks must pass, how long the node must have been quiet); `force` lets a drain evict, at its
    deadline, what policy or a person said may be forced.
    """

    operation: str
    step: Step
    incident: str
    node: NodeIdentity
    boot_id: str
    deadline: datetime
    faults: tuple[Fault, ...] = ()
    parts: tuple[Part, ...] = ()
    checks: tuple[str, ...] = ()
    settle: timedelta = field(default=timedelta(0))
    force: bool = False
