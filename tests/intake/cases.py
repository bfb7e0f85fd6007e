"""Nodes, reports and rules to judge, small enough to be read in a table row."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from fleet.condition import format_message, parse_message
from fleet.fault import CONDITION_OF, Advice, Fault, FaultName
from fleet.mark import Mark, MarkState
from fleet.node import NodeIdentity, NodeState, Taint
from fleet.part import Part
from fleet.report import Report
from policies.budget_terms import Breaker

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOLD = Taint("gpumend.io/hold", "gpu-lost", "NoSchedule")
FOREIGN = Taint("team", "x", "NoSchedule")
NODE = NodeIdentity("c", "n1", "u1", "0a1b2c3d")


def a_fault(name=FaultName.GPU_LOST, part="gpu:3", advice=Advice.REBOOT, since=NOW, count=1):
    return Fault(Part(part), name, "xid:79", advice, count, since)


def a_mark(state=MarkState.PENDING, **changes):
    mark = Mark("0a1b2c3d-20261129110000", "0a1b2c3d", "u1", state, NOW, ("taint",))
    return replace(mark, **changes)


def a_node(mark=None, taints=(), **changes):
    node = NodeState(
        identity=NODE,
        resource_version="7",
        boot_id="b1",
        labels={},
        taints=tuple(taints),
        conditions=(),
        unschedulable=False,
        deleting=False,
        allocatable={},
        mark=mark,
    )
    return replace(node, **changes)


def a_report(*faults, unknown=(), witness=True, node=NODE, boot_id="b1"):
    return Report(node, boot_id, faults, tuple(unknown), NOW, witness)


def condition(*faults, boot_id="b1", kind=None):
    """A condition of ours as an agent writes it; without faults a healthy GPU."""
    return {
        "type": CONDITION_OF[faults[0].name] if faults else kind or "gpumend.io/GPU",
        "status": "False" if faults else "True",
        "reason": "Fault" if faults else "Healthy",
        "message": format_message(boot_id, faults),
    }


@dataclass(frozen=True)
class PlainRules:
    """Holds every fault but an application's; a lost GPU is the most urgent."""

    cool_down: timedelta = timedelta(hours=1)
    breaker: Breaker = field(default_factory=Breaker)
    dry: tuple[FaultName, ...] = ()
    only_told: tuple[FaultName, ...] = ()
    proves: bool = True

    def report(self, node, now, agent_silent, before):
        ours = [each for each in node.conditions if each.type.startswith("gpumend.io/")]
        heard = [(each, parse_message(each.message)) for each in ours]
        current = [each for each in heard if each[1].boot_id == node.boot_id]
        faults = [
            fault for each, said in current if each.status == "False" for fault in said.faults
        ]
        unknown = ("monitor-silent",) if agent_silent else ()
        return Report(node.identity, node.boot_id, tuple(faults), unknown, now, bool(current))

    def holds(self, fault):
        return fault.name not in (FaultName.APPLICATION, *self.dry, *self.only_told)

    def tells(self, fault):
        return fault.name in self.only_told

    def rehearses(self, fault):
        return fault.name in self.dry

    def urgency(self, fault):
        return 0 if fault.name is FaultName.GPU_LOST else 1

    def scopes(self, node):
        pool = node.labels.get("gpumend.io/pool")
        return {"cluster": node.identity.cluster, **({"pool": pool} if pool else {})}


def later(**delta):
    return NOW + timedelta(**delta)
