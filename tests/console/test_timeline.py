"""What a person reads of a run, from histories that a real server recorded."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from activities.adapters.payloads import DATA_CONVERTER
from activities.adapters.temporal_history import Decided, Done, Ended, Over, Unread, read_history
from console.node_facts import NodeFacts, Told
from console.timeline import timeline
from fleet.decision import Wait
from tests.cluster import FAULT, seen_node

REPLAY = Path(__file__).parents[1] / "replay"
INCIDENTS = sorted(
    path.stem
    for path in REPLAY.glob("*.json")
    if '"name": "node-remediation"' in path.read_text()[:2000]
)


def events_of(name):
    text = (REPLAY / f"{name}.json").read_text()
    return WorkflowHistory.from_json(name, text).events


async def told(name):
    return await read_history(events_of(name), DATA_CONVERTER)


async def story(name, node=None):
    return [(each.what, each.text) for each in timeline(await told(name), node)]


@pytest.mark.parametrize("name", INCIDENTS)
async def test_every_recorded_history_is_read_wholly(name):
    found = await told(name)
    assert [each for each in found if isinstance(each, Unread)] == [] or "malformed" in name
    recorded = json.loads((REPLAY / f"{name}.json").read_text())["events"]
    markers = [each for each in recorded if each["eventType"] == "EVENT_TYPE_MARKER_RECORDED"]
    failed = [each for each in markers if "failure" in each["markerRecordedEventAttributes"]]
    assert len([e for e in found if isinstance(e, Decided | Done)]) == len(markers) - len(failed)


async def test_a_repair_is_told_from_the_first_evidence_to_the_end():
    entries = await story("test_a_fault_that_a_reset_repairs_ends_as_repaired")
    steps = [what for what, text in entries if text.startswith("succeeded")]
    assert steps[:3] == ["hold", "recall", "lease"]
    assert {"evidence", "held", "opened", "drain", "reset-gpu", "verify", "over"} <= {
        what for what, _ in entries
    }
    assert entries[-1] == ("over", "closed: repaired")
    evidence = next(text for what, text in entries if what == "evidence")
    assert evidence == "uncontained-memory on gpu:3 (xid:95)"


async def test_a_step_is_shown_with_the_reasons_of_its_decision():
    found = timeline(await told("test_a_fault_that_a_reset_repairs_ends_as_repaired"), None)
    hold = next(each for each in found if each.what == "hold")
    assert (hold.text, hold.reasons) == ("succeeded", ("a new incident",))
    verify = next(each for each in found if each.what == "verify" and "begins" in each.text)
    assert verify.reasons == ("no check of our own has seen the fault",)


async def test_what_people_said_is_shown_with_who_and_why():
    entries = await story("test_a_pause_holds_everything_until_resumed")
    orders = [text for what, text in entries if what == "order"]
    assert [text.split(":")[0] for text in orders] == ["pause by ada", "resume by ada"]


async def test_what_this_version_cannot_read_is_said_and_the_rest_is_told():
    events = [*events_of("test_a_hand_off_stays_open_until_a_person_says")]
    signal = next(e for e in events if e.HasField("workflow_execution_signaled_event_attributes"))
    signal.workflow_execution_signaled_event_attributes.input.payloads[0].data = b'{"node": 3}'
    found = await read_history(events, DATA_CONVERTER)
    assert len([each for each in found if isinstance(each, Unread)]) == 1
    assert isinstance(found[-1], Over)


async def test_waiting_for_the_same_thing_again_is_one_line():
    found = await told("test_a_queued_ask_is_answered_by_a_grant")
    wait = next(e for e in found if isinstance(e, Decided) and isinstance(e.decision, Wait))
    assert isinstance(wait.decision, Wait)
    later = [
        Decided(
            wait.at + timedelta(seconds=n),
            replace(wait.decision, until=wait.decision.until + timedelta(seconds=n)),
        )
        for n in range(3)
    ]
    (line,) = timeline(later, None)
    assert (line.times, line.last) == (3, later[-1].at)


async def test_a_failed_activity_is_told_in_its_words():
    found = await told("test_a_fault_that_a_reset_repairs_ends_as_repaired")
    ended = next(each for each in found if isinstance(each, Ended))
    (line,) = timeline([replace(ended, outcome=None, failure="worker lost")], None)
    assert line.text == "failed after 0s: worker lost"


def test_without_a_run_the_cluster_tells_what_it_knows():
    _, state = seen_node()
    at = datetime(2026, 11, 29, 12, 5, tzinfo=UTC)
    event = Told(at, "IncidentDrained", "drained", 2)
    facts = NodeFacts(state, faults=(FAULT,), events=(event,))
    lines = [(each.what, each.text) for each in timeline((), facts)]
    assert lines == [
        ("evidence", "uncontained-memory on gpu:3 (xid:95, asks for reset-gpu)"),
        ("held", f"incident {state.mark.id} (owned)" if state.mark else ""),
        ("event", "IncidentDrained: drained"),
    ]
