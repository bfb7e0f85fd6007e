"""The agent's own client against both servers: conditions merge by type, the Lease is renewed."""

import asyncio
from datetime import UTC, datetime

import pytest

from fleet.errors import NotFound, Refused
from fleet.fault import Advice, Fault, FaultName
from fleet.part import Part
from probes.agent.api import ApiServer
from probes.agent.conditions import conditions
from probes.agent.publish import Board, renew_lease

NOW = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def agent(server, tmp_path):
    token = tmp_path / "token"
    token.write_text(server.endpoint.tokens["admin"])
    return ApiServer(server.endpoint.url, token, server.endpoint.ca)


def memory_fault(count):
    part, name = Part("gpu:3"), FaultName.UNCONTAINED_MEMORY
    return Fault(part, name, "xid:95", Advice.RESET_GPU, count, NOW)


async def test_conditions_are_merged_by_type_and_those_of_others_stay(agent, api, node):
    name = node["metadata"]["name"]
    board = Board(agent, name)
    await asyncio.to_thread(board.read)
    assert board.known == {}
    changed = board.differing(conditions("b1", [memory_fault(1)]))
    await asyncio.to_thread(board.write, changed, NOW)
    found = (await api.read(f"/api/v1/nodes/{name}"))["status"]["conditions"]
    assert {each["type"]: each["status"] for each in found}["gpumend.io/Memory"] == "False"
    assert [each["status"] for each in found if each["type"] == "Ready"] == ["True"]
    assert len(found) == 10

    again = Board(agent, name)
    await asyncio.to_thread(again.read)
    assert again.differing(conditions("b1", [memory_fault(1)])) == []
    changed = again.differing(conditions("b1", [memory_fault(10)]))
    assert [each.type for each in changed] == ["gpumend.io/Memory"]
    await asyncio.to_thread(again.write, changed, NOW)
    (memory,) = [
        each
        for each in (await api.read(f"/api/v1/nodes/{name}"))["status"]["conditions"]
        if each["type"] == "gpumend.io/Memory"
    ]
    assert "count=10" in memory["message"]
    assert memory["lastTransitionTime"] == "2026-11-29T12:00:00Z"


async def test_the_lease_is_created_and_renewed(agent, api, node):
    await api.post("/api/v1/namespaces", {"metadata": {"name": "gpumend"}})
    name = node["metadata"]["name"]
    for boot, second in (("b1", 1), ("b2", 2)):
        await asyncio.to_thread(renew_lease, agent, name, boot, NOW.replace(second=second))
    path = f"/apis/coordination.k8s.io/v1/namespaces/gpumend/leases/agent-{name}"
    spec = (await api.read(path))["spec"]
    assert spec["holderIdentity"] == "b2"
    assert spec["renewTime"] == "2026-11-29T12:00:02.123456Z"


async def test_a_node_that_is_not_there_and_a_bad_token_are_told_apart(agent, tmp_path):
    with pytest.raises(NotFound):
        await asyncio.to_thread(Board(agent, "nobody").read)
    bad = tmp_path / "bad"
    bad.write_text("not-a-token")
    stranger = ApiServer(agent.url, bad, agent.ca_file)
    with pytest.raises(Refused) as refused:
        await asyncio.to_thread(Board(stranger, "nobody").read)
    assert refused.value.code == 401
