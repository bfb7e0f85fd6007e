"""What a step is asked to do: everything an activity needs, decided before it starts.

The operation id and the boot id are in the history before the call, so that whoever repeats it
can look whether it happened instead of doing it twice.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleet.fault import Fault, FaultName
from fleet.finding import Finding
from fleet.node import NodeIdentity
from fleet.part import Part
from fleet.step import Step


@dataclass(frozen=True, slots=True)
class StepRequest:
    """One step on one node.

    `operation` names this attempt in Pods, provider calls and the audit. `boot_id` is the boot that
    the decision rested on, `faults` what justifies it; an activity that sees otherwise refuses.
    `evidence` is what the last verify on this very boot found: it outranks conditions that have
    since turned healthy. `deadline` is absolute and only ever tightens. `checks` and `settle` are a
    verify's (which checks must pass, how long the node must have been quiet). `makes_way_for` is
    the step that a drain serves: a GPU reset waits for every Pod that may hold a GPU, a reboot does
    not; a lease that makes way for a hand-off leaves its node with people. `force` lets a drain
    evict what only policy or a person may allow and, at its deadline, delete what is left with its
    own grace; it lets a release take the hold off a node that is not seen to be well, and a hold
    put on again what a person took off, or take over the mark that a new Node object of the same
    machine got. `harmless` are the faults that
    policy holds no node for: they do not keep a release from giving it back. `end` is, for a close,
    how the incident ends: it goes with the Event that says so. `lent` tells a release that a
    lease, or an ask for one, is to be given back once the node is. `dry` is a rehearsal's: nothing
    of ours is on the node, and nothing may come on it.
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
    makes_way_for: Step = Step.REBOOT
    evidence: tuple[Finding, ...] = ()
    harmless: tuple[FaultName, ...] = ()
    end: str = ""
    lent: bool = False
    dry: bool = False
    lose_scratch: bool = False
    ask_first: bool = False
    job_labels: tuple[str, ...] = ()
