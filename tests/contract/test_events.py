"""Events about Nodes, by the production writer and with the rights that we ship."""

import pytest
import yaml

from activities.adapters.kubernetes import connect
from activities.event_writer import EventWriter
from activities.node_event import EVENTS
from activities.step_events import event_of_step
from fleet.names import MARK_ANNOTATION
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import QUEUED
from fleet.step import Step
from simulator.demo.install import DEPLOY
from tests.cluster import INCIDENT, identity, now, request_for
from tests.contract.conftest import unique

WAITS = Outcome(OutcomeKind.TRANSIENT, QUEUED)


@pytest.fixture
async def api(server, tmp_path):
    config = server.endpoint.write_kubeconfig(tmp_path / "kubeconfig")
    async with connect(str(config)) as found:
        yield found


async def test_an_event_is_made_once_however_often_it_is_said(api):
    node = identity(unique("gpu"))
    writer = EventWriter(api, now)
    for operation in ("i-3-lease", "i-3-lease", "i-5-lease", "i-5-lease"):
        event = event_of_step(request_for(node, Step.LEASE, operation=operation), WAITS)
        assert event
        assert await writer.write(event)
    found = await api.page(EVENTS, query={"fieldSelector": f"involvedObject.name={node.name}"})
    assert [each["count"] for each in found.items] == [1]
    only = found.items[0]
    assert only["involvedObject"]["kind"] == "Node"
    assert only["reason"] == "IncidentWaits"
    assert only["metadata"]["annotations"][MARK_ANNOTATION] == INCIDENT


async def test_a_node_name_of_any_length_makes_a_valid_event(api):
    for name in ("n", "a" * 63 + ".b", ".".join(["x" * 50] * 4) + "." + "y" * 49):
        event = event_of_step(
            request_for(identity(name), Step.HOLD), Outcome(OutcomeKind.SUCCEEDED)
        )
        assert event
        assert await EventWriter(api, now).write(event)


def test_the_worker_may_write_events_where_node_events_live_and_nowhere_else():
    rules = [
        (each["kind"], each["metadata"].get("namespace"), rule["verbs"])
        for each in yaml.safe_load_all((DEPLOY / "engine-rbac.yaml").read_text())
        for rule in each.get("rules", ())
        if "events" in rule["resources"]
    ]
    assert rules == [("Role", "default", ["create"])]
