"""The long script: what happens to a fleet in a bad quarter of an hour, in two minutes.

Four racks; the last is the pool of inference. Rack 1 is struck at once, racks 2 and 3 bear most of
the rest, so that no rack's budget is needed by all of it at the same time. The table says when.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from simulator.demo.claims import found_by_check, proven, queued, swept, tripped, untouched
from simulator.demo.fleet import (
    GPUS,
    INFERENCE,
    JOB_LABEL,
    LATELY,
    LONG_AGO,
    TRAINING,
    Berth,
    Fleet,
    Load,
    large_berths,
    waiting_for,
)
from simulator.demo.happenings.alarm import CriesWolf, IsAmong
from simulator.demo.happenings.hardware import (
    AgentStops,
    Ails,
    Breaks,
    ComesBack,
    KubeletDies,
    LosesLog,
)
from simulator.demo.happenings.identity import AnotherComes
from simulator.demo.happenings.persons import (
    ADA,
    GRACE,
    Asks,
    AsksForSweep,
    LosesHold,
    OwnedByOthers,
)
from simulator.demo.scenario import Happening, Scenario, Trouble
from simulator.hardware.nature import (
    APPLICATION,
    EXHAUSTED_MEMORY,
    FIRMWARE,
    LINK_FLAP,
    LOST,
    MEMORY,
    RIDDLE,
    STUBBORN_MEMORY,
    STUCK_LINK,
    WRONG_RESULTS,
    Ail,
    Nature,
)

BUDGETS = {"cluster": 7, "rack": 2, "job": 3}
JITTER_SECONDS = 1.5
AT_ONCE = 3
"""Nodes of rack 1 that break at once, one more than its budget."""
WOLF_SECONDS = 15.0

RACK_1, RACK_2, RACK_3 = "rack-1", "rack-2", "rack-3"
ROWS: tuple[tuple[str, float, str, str | None, tuple[str, ...]], ...] = (
    # trouble, seconds, rack, end, steps
    ("silent-agent", 0.0, RACK_1, None, ()),
    ("blind", 0.0, RACK_2, None, ()),
    ("driver-hang", 0.0, RACK_1, "repaired", ("reboot",)),
    ("wrong-results", 0.0, RACK_3, "handed_off", ()),
    ("missing-adapter", 2.0, RACK_3, "repaired", ("reboot",)),
    ("exhausted-memory", 3.0, RACK_2, "replaced", ("replace",)),
    ("lost", 5.0, RACK_2, "repaired", ("reboot",)),
    ("dead-kubelet", 6.0, RACK_3, "repaired", ("reboot",)),
    ("application", 8.0, RACK_2, None, ()),
    ("link-flap", 8.0, RACK_1, "recovered", ()),
    ("pinned-pod", 10.0, RACK_3, "repaired", ("reset-gpu",)),
    ("stubborn-memory", 12.0, RACK_2, "repaired", ("reset-gpu", "reboot")),
    ("relapse", 16.0, RACK_2, "repaired", ("reset-gpu", "reboot")),
    ("forgetful-cloud", 18.0, RACK_3, "repaired", ("reboot",)),
    ("hold-taken", 22.0, RACK_3, "", ()),
    ("another-machine", 34.0, RACK_3, "superseded", ()),
    ("others-node", 38.0, RACK_1, "repaired", ("reset-gpu",)),
    ("riddle", 40.0, RACK_2, "handed_off", ()),
)
"""Where the end is empty the dice choose what the person says."""

CHOICES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("resume", "repaired", ("reset-gpu",)),
    ("cancel", "cancelled", ()),
)


class Writer:
    """Writes the script that one seed stands for."""

    def __init__(self, seed: int, count: int) -> None:
        self._seed = seed
        self._dice = Random(seed)  # noqa: S311
        self._berths = large_berths(count)
        self._free: dict[str, list[str]] = {}
        for each in self._berths:
            self._free.setdefault(each.rack, []).append(each.node)

    def write(self) -> Scenario:
        """The whole of it."""
        at_once = [self._take(RACK_1) for _ in range(AT_ONCE)]
        nodes = {kind: self._take(rack) for kind, _, rack, _, _ in ROWS}
        wolf = tuple(each.node for each in self._berths if each.pool == INFERENCE)
        troubles = [self._trouble("rack", node, 1.0, self._breaks(MEMORY)) for node in at_once]
        troubles += [self._of_row(row, nodes) for row in ROWS]
        troubles += self._wolf(wolf)
        fleet, spare = self._fleet(nodes)
        claims = (
            queued(RACK_1),
            tripped(INFERENCE),
            untouched(nodes["others-node"]),
            found_by_check(nodes["driver-hang"], "driver-hung", "child:hung"),
            found_by_check(nodes["missing-adapter"], "nic-missing", "adapters:missing"),
            found_by_check(nodes["wrong-results"], "wrong-results", "compute:products"),
            swept(nodes["wrong-results"]),
            proven(spare),
            *(proven(nodes[each], joined=False) for each in NEW_NODES),
        )
        ordered = tuple(sorted(troubles, key=lambda each: each.after))
        return Scenario(self._seed, fleet, ordered, self._dice.uniform(5.0, 40.0), claims)

    def _take(self, rack: str) -> str:
        free = self._free[rack]
        return free.pop(self._dice.randrange(len(free)))

    def _trouble(self, kind: str, node: str, after: float, happening: Happening) -> Trouble:
        return Trouble(kind, node, after, happening, "repaired", ("reset-gpu",))

    def _breaks(self, nature: Nature) -> Breaks:
        return Breaks(self._dice.randrange(GPUS), nature)

    def _of_row(
        self,
        row: tuple[str, float, str, str | None, tuple[str, ...]],
        nodes: Mapping[str, str],
    ) -> Trouble:
        kind, after, _, end, steps = row
        after = round(after and after + self._dice.uniform(0.0, JITTER_SECONDS), 1)
        happening: Happening
        if kind == "hold-taken":
            verb, end, steps = self._dice.choice(CHOICES)
            lost = LosesHold(self._breaks(STUCK_LINK), GRACE)
            happening = Asks(lost, GRACE, verb, "it was in my way")
        else:
            happening = Ails(Ail(kind)) if kind in list(Ail) else self._happening(kind)
        passes = kind in ("link-flap", "application")
        return Trouble(kind, nodes[kind], after, happening, end, steps, passes=passes)

    def _happening(self, kind: str) -> Happening:
        """People and clouds that come with it, each kind in its own way."""
        match kind:
            case "exhausted-memory":
                broken = self._breaks(EXHAUSTED_MEMORY)
                return Asks(broken, ADA, "approve", "no spare rows: send it back", you_may=True)
            case "pinned-pod":
                stuck = self._breaks(FIRMWARE)
                return Asks(stuck, GRACE, "approve", "its owner agreed", by_signal=True)
            case "wrong-results":
                wrong = AsksForSweep(self._breaks(WRONG_RESULTS), ADA)
                return Asks(wrong, ADA, "deny", "the vendor wants to see it first")
            case "relapse":
                return ComesBack(self._breaks(FIRMWARE))
            case "another-machine":
                return AnotherComes(self._breaks(LOST), OTHER_MACHINE)
            case "others-node":
                return OwnedByOthers(self._breaks(MEMORY), ADA)
            case _:
                return ALONE[kind]() if kind in ALONE else self._breaks(NATURES[kind])

    def _wolf(self, nodes: tuple[str, ...]) -> list[Trouble]:
        first, *others = nodes
        cries: Happening = CriesWolf(nodes, WOLF_SECONDS)
        after = round(15.0 + self._dice.uniform(0.0, JITTER_SECONDS), 1)
        found = [Trouble("false-alarm", first, after, cries, "recovered", maybe=True)]
        found += [
            Trouble("false-alarm", node, after, IsAmong(), "recovered", maybe=True)
            for node in others
        ]
        return found

    def _fleet(self, nodes: Mapping[str, str]) -> tuple[Fleet, str]:
        """The fleet, and the node that a successor gets."""
        spare, other = f"node-{len(self._berths) + 1}", nodes["another-machine"]
        berths = [self._placed(each, nodes) for each in self._berths]
        for node, machine, rack in ((spare, spare, RACK_2), (other, OTHER_MACHINE, RACK_3)):
            berths.append(Berth(node, machine, rack, TRAINING, spare=True, proven=None))
        loads = (*_loads(nodes["pinned-pod"]), waiting_for(spare))
        return Fleet(tuple(berths), loads, BUDGETS), spare

    def _placed(self, berth: Berth, nodes: Mapping[str, str]) -> Berth:
        forgetful = berth.node == nodes["forgetful-cloud"]
        kept = berth.node == nodes["wrong-results"]
        return replace(
            berth,
            forgetful=forgetful,
            watched=berth.node in {nodes[each] for each in Ail if each in nodes},
            proven=None if forgetful else LONG_AGO if kept else LATELY,
            kept=kept,
        )


OTHER_MACHINE = "machine-b"
NEW_NODES = ("another-machine", "forgetful-cloud")
"""Troubles at whose end the node is a new one by its name, and has to be proven."""
NATURES = {
    "forgetful-cloud": LOST,
    **{each.name: each for each in (APPLICATION, LINK_FLAP, LOST, STUBBORN_MEMORY, RIDDLE)},
}
ALONE: Mapping[str, Callable[[], Happening]] = {
    "silent-agent": AgentStops,
    "blind": LosesLog,
    "dead-kubelet": KubeletDies,
}


def _loads(pinned: str) -> tuple[Load, ...]:
    """A job of 16 nodes, inference under a budget, and one pod that nobody may evict."""
    job = {JOB_LABEL: "llm-70b"}
    return (
        Load("notebook", 1, 1, may_miss=0, node=pinned),
        Load("llm", 16, GPUS, may_miss=None, labels=job, pool=TRAINING),
        Load("chat", 10, GPUS // 2, may_miss=1, pool=INFERENCE),
    )


def write_large(seed: int, count: int) -> Scenario:
    """The long script that this seed stands for."""
    return Writer(seed, count).write()
