"""The long script: what happens to a fleet in a bad quarter of an hour, in two minutes.

Four racks; the last is the pool of inference. Rack 1 is struck at once, racks 2 and 3 bear most of
the rest, so that no rack's budget is needed by all of it at the same time. The table says when.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from simulator.demo.claims import found_by_check, queued, tripped, untouched
from simulator.demo.fleet import (
    GPUS,
    INFERENCE,
    JOB_LABEL,
    TRAINING,
    Berth,
    Fleet,
    Load,
    large_berths,
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
from simulator.demo.happenings.persons import ADA, GRACE, Asks, LosesHold, OwnedByOthers
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
    Ail,
    Nature,
)

BUDGETS = {"cluster": 6, "rack": 2, "job": 2}
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
    ("missing-adapter", 2.0, RACK_3, "repaired", ("reboot",)),
    ("exhausted-memory", 3.0, RACK_2, "replaced", ("replace",)),
    ("lost", 5.0, RACK_2, "repaired", ("reboot",)),
    ("dead-kubelet", 6.0, RACK_3, "repaired", ("reboot",)),
    ("application", 8.0, RACK_3, None, ()),
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
        claims = (
            queued(RACK_1),
            tripped(INFERENCE),
            untouched(nodes["others-node"]),
            found_by_check(nodes["driver-hang"], "driver-hung", "child:hung"),
            found_by_check(nodes["missing-adapter"], "nic-missing", "adapters:missing"),
        )
        ordered = tuple(sorted(troubles, key=lambda each: each.after))
        fleet = self._fleet(nodes)
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
        match kind:
            case "silent-agent":
                return AgentStops()
            case "blind":
                return LosesLog()
            case "dead-kubelet":
                return KubeletDies()
            case "exhausted-memory":
                broken = self._breaks(EXHAUSTED_MEMORY)
                return Asks(broken, ADA, "approve", "no spare rows: send it back", you_may=True)
            case "pinned-pod":
                stuck = self._breaks(FIRMWARE)
                return Asks(stuck, GRACE, "approve", "its owner agreed", by_signal=True)
            case "forgetful-cloud":
                return self._breaks(LOST)
            case "relapse":
                return ComesBack(self._breaks(FIRMWARE))
            case "another-machine":
                return AnotherComes(self._breaks(LOST), OTHER_MACHINE)
            case "others-node":
                return OwnedByOthers(self._breaks(MEMORY), ADA)
            case _:
                return self._breaks(NATURES[kind])

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

    def _fleet(self, nodes: Mapping[str, str]) -> Fleet:
        watched = {nodes[each] for each in Ail}
        berths = [
            replace(
                each,
                forgetful=each.node == nodes["forgetful-cloud"],
                watched=each.node in watched,
            )
            for each in self._berths
        ]
        spare = f"node-{len(berths) + 1}"
        berths.append(Berth(spare, spare, RACK_2, TRAINING, spare=True))
        berths.append(Berth(nodes["another-machine"], OTHER_MACHINE, RACK_3, TRAINING, spare=True))
        return Fleet(tuple(berths), _loads(nodes["pinned-pod"]), BUDGETS)


OTHER_MACHINE = "machine-b"
NATURES = {each.name: each for each in (APPLICATION, LINK_FLAP, LOST, STUBBORN_MEMORY, RIDDLE)}


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
