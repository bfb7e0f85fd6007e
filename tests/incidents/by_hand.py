"""What a person would do with the table of faults in hand: dumb, straight, and without the engine.

It reads the table of `tests/policy/faults.md`, knows a node's faults, means and what each repair
would cure, and writes down in order what is done. It shares nothing with `policies/`; what takes
time is a number here, and what may interrupt a course is not here at all.
"""

import re
from dataclasses import dataclass, field

HARSH = ["reset-gpu", "reboot", "replace"]
TAKES = {"reboot": {"inside", "provider", "power"}, "replace": {"replace"}}
OFTEN = {"firmware-halted": 1, "uncontained-memory": 1}
"""Resets that the policy allows such faults in thirty days; two for others, and two reboots."""
SECONDS = {"drain": 120, "reset-gpu": 20, "reboot": 300, "launch": 240, "replace": 120}


@dataclass
class Sick:
    """One fault of a node, with its row of the table."""

    part: str
    name: str
    stay: float
    drained: bool
    steps: list[str]
    at_leisure: bool = False
    tried: int = -1

    @property
    def gpu(self) -> str:
        link = re.fullmatch(r"nvlink:(\d+)/\d+", self.part)
        return f"gpu:{link[1]}" if link else self.part


@dataclass
class Node:
    faults: list[Sick]
    means: set[str]
    cures: dict[str, set[tuple[str, str]]]
    past: list[tuple[str, str]] = field(default_factory=list)
    did: list[str] = field(default_factory=list)
    clock: float = 0
    drained_for: str = ""
    leased: bool = False

    @property
    def silent(self) -> bool:
        return any(each.name == "host-unreachable" for each in self.faults)


def lead(node: Node) -> tuple[list[str], str]:
    """What is done, in order, and how it ends."""
    node.did.append("hold")
    while node.faults:
        wait(node)
        step = next_step(node)
        if not step:
            return hand_over(node)
        repair(node, step)
        if step == "replace" and node.did[-1] == "replace":
            return [*node.did, *give_back(node)], "replaced"
    return [*node.did, "release", "close"], "repaired"  # the lease goes with the node


def wait(node: Node) -> None:
    """Until the first fault is not tolerated any more; a silent node's own time alone counts."""
    silence = [each.stay for each in node.faults if each.name == "host-unreachable"]
    first = min(silence or [stay_of(node, each) for each in node.faults])
    if first > node.clock:
        node.did += give_back(node)
        node.clock = first


def stay_of(node: Node, sick: Sick) -> float:
    """Who waits for jobs to leave waits no longer once they have left."""
    empty = node.drained_for in ("reboot", "replace")
    return 0 if sick.at_leisure and empty else sick.stay


def left_for(node: Node, sick: Sick) -> list[str]:
    left = []
    for step in sick.steps:
        same = [part for done, part in node.past if done == step]
        count = len([part for part in same if step != "reset-gpu" or part == sick.gpu])
        often = {"replace": 1, "reset-gpu": OFTEN.get(sick.name, 2)}.get(step, 2)
        takes = TAKES.get(step, {"inside"}) - ({"inside"} if node.silent else set())
        reaches = step != "reset-gpu" or sick.gpu.startswith("gpu:")
        if HARSH.index(step) > sick.tried and count < often and takes & node.means and reaches:
            left.append(step)
    return left


def next_step(node: Node) -> str:
    """The harshest first step, unless somebody's fault is past all help that is left."""
    left = [(each, left_for(node, each)) for each in node.faults]
    for sick, own in left:
        due = stay_of(node, sick) <= node.clock
        served = any(s in HARSH[1:] or other.gpu == sick.gpu for other, o in left for s in o)
        if due and not own and not served:
            return ""
    firsts = [own[0] for _, own in left if own]
    return max(firsts, key=HARSH.index, default="")


def repair(node: Node, step: str) -> None:
    if step == "replace":
        node.did += give_back(node)  # nobody keeps a lease while a person thinks
    borrow(node)
    if step == "replace" and "launch" in node.means:
        spend(node, "launch")
    if node.drained_for != step and not node.silent:
        spend(node, "drain")
        node.drained_for = step
        if next_step(node) != step:
            return  # while jobs left, another fault's time was up
    aims = [each for each in node.faults if left_for(node, each)[:1] == [step]]
    reset = {each.gpu for each in aims}
    spend(node, step)
    node.past += [(step, gpu) for gpu in sorted(reset)] if step == "reset-gpu" else [(step, "")]
    for each in node.faults:
        if step != "reset-gpu" or each.gpu in reset:
            each.tried = HARSH.index(step)
    cured = node.cures.get(step, set())
    touched = [f for f in node.faults if step != "reset-gpu" or f.gpu in reset]
    gone = [f for f in touched if (f.part, f.name) in cured]
    node.faults = [each for each in node.faults if each not in gone]


def hand_over(node: Node) -> tuple[list[str], str]:
    """Jobs leave first where the table lists no step, yet a time in which they are to leave."""
    left = [(each, left_for(node, each)) for each in node.faults]
    stuck = [sick for sick, own in left if not own]
    stuck = [each for each in stuck if stay_of(node, each) <= node.clock] or stuck
    alone = [each for each in stuck if not each.steps and each.drained]
    if alone and not node.silent and not node.drained_for:
        borrow(node)
        spend(node, "drain")
    return [*node.did, *give_back(node)], "hand-off"


def borrow(node: Node) -> None:
    if not node.leased:
        node.did.append("lease")
    node.leased = True


def give_back(node: Node) -> list[str]:
    leased, node.leased = node.leased, False
    return ["give-back"] if leased else []


def spend(node: Node, step: str) -> None:
    node.did.append(step)
    node.clock += SECONDS[step]
