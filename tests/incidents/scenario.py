"""Scenario files: a script of what happens to a node, `---`, and the whole transcript expected.

Lines of a script, one a happening; times are seconds with a unit (`90s`, `10m`, `2h`, `3d`):

    policy NAME                                 tests/scenarios/NAME.yaml, or `default`
    fault gpu:3 uncontained-memory [xid:95] [advice]      sick from the start
    phantom PART NAME [CODE] [ADVICE]           reported, and not so
    at 60s fault|phantom PART NAME [CODE] [ADVICE]      one more
    at 60s clear | report | silent | speaks     faults end; as before; the agent goes, comes
    at 60s unknown WORDS                        something cannot be told
    at 60s rebooted [healing]                   somebody else reboots it
    at 60s granted                              the budget says yes
    at 60s gone | back UID                      the Node object goes; the machine comes back
    at 60s missed                               it went while nobody watched
    at 60s hold removed | mark removed          by a person
    at 60s opted out                            by label
    at 60s annotated WORDS | annotation removed the pause annotation
    dry                                         the incident in which faults are rehearsed
    at 60s pause|resume|skip|cancel|release|approve|deny NAME WORDS    as the workflow takes them
    STEP heals|succeeds|transient|permanent|ambiguous|cancelled|superseded [REASON] [30s]
    means inside provider power launch replace  what a recall finds; `inside` where nothing is said
    at 60s answers                              the node is reachable again
    at 60s recants                              the agent says that all is well, and it is not
    at 60s idle                                 no Pod uses the GPUs any more
    past STEP PART 3d                           an attempt of an earlier incident, so long ago
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

from fleet.decision import Ask
from fleet.fault import FaultName
from fleet.message import Granted, HoldRemoved, Message, NodeGone
from fleet.order import ANSWERS, Order, Said, Verb
from fleet.outcome import Outcome, OutcomeKind, PastAttempt
from fleet.part import parse_part
from fleet.step import Means, Step
from policies.document import default_policy, load
from policies.durations import parse_duration
from policies.scene import Scene
from policies.schema import Policy
from policies.skipping import skippable
from tests.incidents.virtual import START, Script, World, a_fault, play
from workflows.operators import refusal

FOLDER = Path(__file__).parents[1] / "scenarios"


def run(script: str) -> list[str]:
    """Play a script and return its transcript."""
    return play(build(script)).transcript


def build(script: str) -> World:
    lines = [line.split("#")[0].split() for line in script.splitlines()]
    words = [line for line in lines if line]
    name = next((line[1] for line in words if line[0] == "policy"), "default")
    world = World(_policy(name), ())
    for line in words:
        if line[0] != "policy":
            _add(world, line)
    return world


@cache
def _policy(name: str) -> Policy:
    if name == "default":
        return default_policy()
    return load((FOLDER / f"{name}.yaml").read_text(), name)


def _add(world: World, line: list[str]) -> None:
    match line:
        case ["fault", part, name, *more]:
            world.faults = (*world.faults, a_fault(part, name, *more))
        case ["phantom", part, name, *more]:
            world.phantoms = (*world.phantoms, a_fault(part, name, *more))
        case ["dry"]:
            world.dry = True
        case ["at", when, *what]:
            world.at(parse_duration(when).total_seconds(), _happening(what))
        case ["means", *means]:
            world.means = tuple(Means(each) for each in means)
        case ["past", step, part, ago]:
            past = PastAttempt(Step(step), START - parse_duration(ago), (parse_part(part),))
            script = Script(Outcome(OutcomeKind.SUCCEEDED, past=(*_past(world), past)))
            world.scripts[Step.RECALL].clear()
            world.scripts[Step.RECALL].append(script)
        case [step, how, *more]:
            world.scripts[Step(step)].append(_script(how, more))


def _past(world: World) -> tuple[PastAttempt, ...]:
    scripts = world.scripts[Step.RECALL]
    return scripts[0].outcome.past if scripts else ()


def _script(how: str, more: list[str]) -> Script:
    seconds = next((_seconds(each) for each in more if re.fullmatch(r"\d+[smhd]", each)), None)
    reason = next((each for each in more if not re.fullmatch(r"\d+[smhd]", each)), "")
    kind = {"heals": "succeeded", "succeeds": "succeeded"}.get(how, how)
    return Script(Outcome(OutcomeKind(kind), reason), seconds, heals=how == "heals")


def _seconds(text: str) -> int:
    return int(parse_duration(text) / timedelta(seconds=1))


def _ordered(world: World, verb: Verb, said: Said) -> Message | None:
    """As the workflow takes orders: what is refused changes nothing."""
    at = world.decisions[-1] if world.decisions else None
    assert world.incident, "orders come to an incident that is open"
    if verb in ANSWERS and isinstance(at, Ask):
        said = replace(said, ask=at.id)
    left_out = skippable(Scene(world.policy, world.incident, world.now), at)
    why = refusal(verb, said, world.incident, at)
    if verb is Verb.SKIP and not isinstance(left_out, Step):
        why = why or left_out
    if why:
        world.say(f"{verb} refused: {why}")
        return None
    order = Order(verb, said.actor, said.reason, world.now, said.ask)
    if verb is Verb.SKIP and isinstance(left_out, Step):
        return replace(order, skips=left_out)
    return order


def _happening(what: list[str]) -> Callable[[World], Message | None]:  # noqa: C901
    def happen(world: World) -> Message | None:  # noqa: C901
        match what:
            case ["fault", part, name, *more]:
                world.faults = (*world.faults, a_fault(part, name, *more))
            case ["phantom", part, name, *more]:
                world.phantoms = (*world.phantoms, a_fault(part, name, *more))
            case ["clear"]:
                world.faults, world.phantoms, world.unknown = (), (), ()
            case ["silent"]:
                world.witness = False
            case ["speaks"]:
                world.witness = True
            case ["unknown", *words]:
                world.unknown = (" ".join(words),)
            case ["rebooted", *healing]:
                world.faults = () if healing else world.faults
                world.boot = f"b{int(world.boot[1:]) + 1}"
            case ["answers"]:
                silent = FaultName.HOST_UNREACHABLE
                world.faults = tuple(each for each in world.faults if each.name is not silent)
            case ["recants"]:
                world.recanted = True
            case ["idle"]:
                world.busy = False
                return None
            case ["granted"]:
                return Granted(world.now)
            case ["gone"]:
                return NodeGone(world.node.uid, world.now)
            case ["missed"]:
                return NodeGone("", world.now)
            case ["back", uid]:
                world.node = replace(world.node, uid=uid)
            case ["hold", "removed"]:
                return HoldRemoved(world.node.uid, False, world.now)
            case ["mark", "removed"]:
                return HoldRemoved(world.node.uid, True, world.now)
            case ["opted", "out"]:
                world.managed = False
            case ["annotated", *words]:
                world.pause = " ".join(words)
            case ["annotation", "removed"]:
                world.pause = None
            case ["report"]:
                pass
            case [verb, actor, *words]:
                return _ordered(world, Verb(verb), Said(actor, " ".join(words)))
        return world.report()

    return happen
