"""The audit log: every write is in it, with who, what, when, and how it ended."""

import json
from datetime import datetime

import pytest

from tests.contract.client import MERGE


@pytest.fixture
def events(server, namespace):
    """Reads the audit events of this test's namespace."""

    def read():
        lines = server.endpoint.audit.read_text().splitlines()
        found = [json.loads(line) for line in lines]
        return [e for e in found if e.get("objectRef", {}).get("namespace") == namespace]

    return read


async def test_every_write_is_in_the_log_before_its_answer(api, namespace, events):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    made = await api.created(path, body)
    event = events()[-1]
    assert event["kind"] == "Event"
    assert event["apiVersion"] == "audit.k8s.io/v1"
    assert event["level"] == "RequestResponse"
    assert event["stage"] == "ResponseComplete"
    assert event["verb"] == "create"
    assert event["requestURI"] == path
    assert event["user"]["username"] == "admin"
    assert "system:masters" in event["user"]["groups"]
    assert event["objectRef"]["resource"] == "configmaps"
    assert event["objectRef"]["name"] == "a"
    assert event["objectRef"]["apiVersion"] == "v1"
    assert event["responseStatus"]["code"] == 201
    assert event["requestObject"]["data"] == {"k": "v"}
    assert event["responseObject"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert event["annotations"]["authorization.k8s.io/decision"] == "allow"
    received, done = (
        datetime.fromisoformat(event[key]) for key in ("requestReceivedTimestamp", "stageTimestamp")
    )
    assert received <= done
    assert event["requestReceivedTimestamp"].endswith("Z")


async def test_a_patch_is_logged_as_it_was_sent_and_with_what_came_of_it(api, namespace, events):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.created(path, {"metadata": {"name": "a"}})
    await api.patch(f"{path}/a", {"data": {"k": "v"}}, MERGE)
    event = events()[-1]
    assert event["verb"] == "patch"
    assert event["requestObject"] == {"data": {"k": "v"}}
    assert event["responseObject"]["data"] == {"k": "v"}


async def test_an_event_is_one_line_however_the_body_was_written(api, namespace, events):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = json.dumps({"metadata": {"name": "a"}}, indent=1).encode() + b"\n"
    await api.raw("POST", path, content=body, headers={"Content-Type": "application/json"})
    assert events()[-1]["requestObject"]["metadata"]["name"] == "a"
    patch = json.dumps({"data": {"k": "v"}}, indent=1).encode() + b"\n"
    await api.patch(f"{path}/a", patch)
    assert events()[-1]["requestObject"] == {"data": {"k": "v"}}


async def test_refused_writes_are_logged_too(api, namespace, events):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.patch(f"{path}/none", {"data": {"k": "v"}})
    event = events()[-1]
    assert event["responseStatus"]["code"] == 404
    assert event["responseStatus"]["reason"] == "NotFound"
    assert event["responseStatus"]["status"] == "Failure"


async def test_an_eviction_is_a_create_of_a_subresource(api, namespace, events):
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    await api.created(path, {"metadata": {"name": "p"}, "spec": spec})
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    await api.post(f"{path}/p/eviction", body)
    event = events()[-1]
    assert (event["verb"], event["objectRef"]["subresource"]) == ("create", "eviction")
    assert event["objectRef"]["name"] == "p"
    await api.delete(f"{path}/p", {"gracePeriodSeconds": 0})
    event = events()[-1]
    assert event["verb"] == "delete"
    assert event["requestObject"]["gracePeriodSeconds"] == 0


async def test_reads_are_not_logged(api, namespace, events):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.created(path, {"metadata": {"name": "a"}})
    before = len(events())
    await api.read(path)
    await api.read(f"{path}/a")
    assert len(events()) == before
