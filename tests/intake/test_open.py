"""A person's word on a node: an incident comes of it, once, and it goes with the incident."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from activities.evidence import standing as still_stands
from fleet.fault import Advice, FaultName
from fleet.finding import Verdict
from fleet.mark import MarkState
from fleet.names import OPEN_ANNOTATION
from fleet.open_request import LONGEST, OpenRequest, format_open_request, parse_open_request
from intake.admission import Refusal, refusal
from intake.marks import Act, Facts, next_write
from intake.rules import PolicyRules
from intake.settings import Settings
from policies.schema import Policy
from policies.signals import read_report
from tests.intake.cases import HOLD, NOW, a_fault, a_mark, a_node, a_report, later

ASKED = OpenRequest(FaultName.NIC_MISSING, "the cable is loose", "kim")
TEXT = format_open_request(ASKED)
OWNED = a_mark(MarkState.OWNED)
TAKEN = replace(ASKED, incident=OWNED.id)
BY_PERSON = a_fault(FaultName.NIC_MISSING, "host", Advice.NONE)


def test_a_request_survives_its_annotation():
    assert parse_open_request(TEXT) == ASKED
    assert parse_open_request(format_open_request(TAKEN)) == TAKEN


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write"),
        ("[]", "write"),
        ("{}", "fault must be"),
        ('{"fault": "gpu-lost", "actor": "kim"}', "reason must be"),
        ('{"fault": "gpu-lost", "reason": "x", "actor": ""}', "actor must be"),
        ('{"fault": "gpu-gone", "reason": "x", "actor": "kim"}', "no fault 'gpu-gone'"),
        (TEXT.replace("loose", "x" * LONGEST), "reason must be 1 to 500"),
    ],
)
def test_what_is_no_request_says_what_to_write(text, says):
    with pytest.raises(ValueError, match=says):
        parse_open_request(text)


@pytest.mark.parametrize(
    ("node", "stands"),
    [
        (a_node(opened=ASKED), True),
        (a_node(), False),
        (a_node(OWNED, [HOLD], opened=ASKED), False),
        (a_node(OWNED, [HOLD], opened=TAKEN), True),
        (a_node(opened=TAKEN), False),
        (a_node(OWNED, [HOLD], opened=replace(ASKED, incident="another")), False),
    ],
)
def test_it_stands_until_its_incident_is_over(node, stands):
    report = read_report(node, Policy(), NOW, agent_silent=False)
    found = [each for each in report.faults if each.code == "person"]
    assert bool(found) is stands
    assert all((each.name, each.part) == (FaultName.NIC_MISSING, "host") for each in found)
    person = replace(BY_PERSON, code="person")
    verdict = still_stands(person, node, NOW, agent_alive=False)
    assert verdict is (Verdict.FAULT if stands else Verdict.OK)


def act(node, **known):
    facts = Facts(NOW, a_report(), timedelta(hours=1), **known)
    write = next_write(node, facts, Settings())
    return write and write.act


@pytest.mark.parametrize(
    ("node", "known", "expected"),
    [
        (a_node(opened=ASKED), {"sick": BY_PERSON}, Act.HOLD),
        (a_node(opened=ASKED, cool_down=later(hours=1)), {"sick": BY_PERSON}, Act.HOLD),
        (a_node(opened=ASKED, pause="x"), {"sick": BY_PERSON}, None),
        (a_node(opened=ASKED, labels={"gpumend.io/managed": "false"}), {"sick": BY_PERSON}, None),
        (a_node(opened=TAKEN), {}, Act.DROP_REQUEST),
        (a_node(opened=TAKEN), {"sick": a_fault()}, Act.DROP_REQUEST),
        (a_node(opened=TAKEN), {"let_go": True}, Act.COOL_DOWN),
        (a_node(a_mark(), [HOLD], opened=ASKED), {}, Act.TAKE_UP),
        (a_node(OWNED, [HOLD], opened=ASKED), {}, Act.TAKE_UP),
        (a_node(OWNED, [HOLD], opened=TAKEN), {}, None),
        (a_node(a_mark(MarkState.PROBATION), opened=ASKED), {}, Act.TAKE_UP),
        (a_node(OWNED, [HOLD], opened=replace(ASKED, incident="x")), {}, Act.DROP_REQUEST),
    ],
)
def test_a_request_is_taken_up_and_dropped_by_what_is_on_the_node(node, known, expected):
    assert act(node, **known) is expected


def test_a_cool_down_yields_to_a_person_and_an_opt_out_does_not():
    node = a_node(opened=ASKED, cool_down=later(hours=1))
    assert refusal(node, BY_PERSON, NOW) is None
    assert refusal(replace(node, pause="x"), BY_PERSON, NOW) is Refusal.PAUSED


async def request(world, name):
    return (await world.node(name)).opened


async def test_an_incident_comes_of_it_and_takes_it_along_when_it_ends(world):
    await world.add_node("n1")
    async with world.watching(rules=PolicyRules(Policy())):
        await world.change("n1", **{OPEN_ANNOTATION: TEXT})
        node = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: world.engine.heard("start"))
        assert node.hold.value == "nic-missing"
        assert node.opened == replace(ASKED, incident=node.mark.id)
        (_, _, report), *_ = world.engine.heard("start")
        assert [each.code for each in report.faults] == ["person"]
        world.engine.open.clear()
        await world.change("n1", mark=None, taints=None)
    async with world.watching(rules=PolicyRules(Policy())) as watcher:
        await world.until(lambda: _gone(world))
        await world.swept(watcher)
    assert len({opening.mark.id for _, opening, _ in world.engine.heard("start")}) == 1


async def _gone(world):
    return await request(world, "n1") is None


async def test_one_that_means_nothing_is_said_once_and_changes_nothing(world, caplog):
    complaints = []

    async def complain(node, reason, text):
        complaints.append((node.name, reason, text))

    await world.add_node("n1")
    await world.change("n1", **{OPEN_ANNOTATION: json.dumps({"fault": "gpu-gone"})})
    async with world.watching(complain=complain) as watcher:
        await world.swept(watcher, 4)
    assert len(world.patches()) == 1, "only the person wrote"
    ((name, reason, text),) = complaints
    assert (name, reason) == ("n1", "IncidentNotOpened")
    assert "no fault 'gpu-gone'" in text
    assert caplog.text.count("did=cannot-open node=n1") == 1
