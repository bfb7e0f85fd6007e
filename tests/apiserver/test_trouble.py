"""What only the emulated server can do: be killed and come back, and make trouble on order."""

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from simulator.apiserver import ApiServer
from simulator.apiserver.injection import Fault
from tests.contract.client import STRATEGIC, Client, refusal

MAPS = "/api/v1/namespaces/gpumend/configmaps"
PODS = "/api/v1/namespaces/gpumend/pods"
BUDGETS = "/apis/policy/v1/namespaces/gpumend/poddisruptionbudgets"


async def make(api, name):
    return await api.created(MAPS, {"metadata": {"name": name}})


async def names(api):
    return [item["metadata"]["name"] for item in (await api.read(MAPS))["items"]]


async def start(folder, port=0):
    command = [sys.executable, "-m", "simulator.apiserver", "--dir", str(folder)]
    process = await asyncio.create_subprocess_exec(
        *command, "--port", str(port), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    line = (await process.stdout.readline()).decode().split()
    assert line[0] == "ready"
    return process, line[1].removeprefix("url=")


async def kill(process, how=signal.SIGKILL):
    os.kill(process.pid, how)
    await process.wait()


async def test_a_killed_server_comes_back_with_every_answered_write(tmp_path):
    process, url = await start(tmp_path)
    token = (tmp_path / "tokens.csv").read_text().split(",")[0]
    made = []
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}) as api:

        async def write(worker):
            for i in range(1000):
                try:
                    answer = await api.post(MAPS, json={"metadata": {"name": f"{worker}-{i}"}})
                except httpx.HTTPError:
                    return
                made.append(answer.json()["metadata"])
                if len(made) == 100:
                    os.kill(process.pid, signal.SIGKILL)

        await asyncio.gather(*(write(worker) for worker in range(4)))
    await process.wait()
    port = int(url.rpartition(":")[2])
    process, url = await start(tmp_path, port)
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}) as api:
        body = (await api.get(MAPS)).json()
        found = {item["metadata"]["name"]: item["metadata"] for item in body["items"]}
        assert len(made) >= 100
        for meta in made:
            assert found[meta["name"]]["uid"] == meta["uid"]
            assert found[meta["name"]]["resourceVersion"] == meta["resourceVersion"]
        newest = max(int(meta["resourceVersion"]) for meta in made)
        assert int(body["metadata"]["resourceVersion"]) >= newest
    await kill(process, signal.SIGTERM)
    assert process.returncode == 0


async def test_a_watch_goes_on_after_a_restart(tmp_path):
    async with ApiServer(tmp_path) as server, Client(server.endpoint) as api:
        first = await make(api, "a")
        await make(api, "b")
    async with ApiServer(tmp_path) as server, Client(server.endpoint) as api:
        version = first["metadata"]["resourceVersion"]
        async with api.watch(MAPS, resourceVersion=version) as watch:
            assert (await watch.next())[1]["metadata"]["name"] == "b"
            await api.delete(f"{MAPS}/a")
            assert (await watch.next())[0] == "DELETED"


async def test_a_line_that_was_cut_by_the_kill_never_was(tmp_path):
    async with ApiServer(tmp_path) as server, Client(server.endpoint) as api:
        await make(api, "a")
        await make(api, "b")
    journal = tmp_path / "journal"
    journal.write_bytes(journal.read_bytes()[:-5])
    async with ApiServer(tmp_path) as server, Client(server.endpoint) as api:
        assert await names(api) == ["a"]
        await make(api, "c")
    async with ApiServer(tmp_path) as server, Client(server.endpoint) as api:
        assert await names(api) == ["a", "c"]


async def test_a_journal_that_was_rewritten_holds_the_same_state(tmp_path, monkeypatch):
    monkeypatch.setattr("simulator.apiserver.store.REWRITE_ABOVE_BYTES", 2000)
    async with ApiServer(tmp_path) as server, Client(server.endpoint) as api:
        made = [await make(api, f"m{i}") for i in range(20)]
        newest = server.store.version
    async with ApiServer(tmp_path) as server, Client(server.endpoint) as api:
        assert server.store.version == newest
        assert len(await names(api)) == len(made)
        async with api.watch(MAPS, resourceVersion="1") as watch:
            (event,) = await watch.end()
        assert event["object"]["code"] == 410


async def test_tokens_of_service_accounts_outlive_a_restart(tmp_path):
    async with ApiServer(tmp_path) as server, Client(server.endpoint) as api:
        accounts = "/api/v1/namespaces/gpumend/serviceaccounts"
        await api.created(accounts, {"metadata": {"name": "agent"}})
        made = await api.created(f"{accounts}/agent/token", {"spec": {}})
    token = made["status"]["token"]
    async with ApiServer(tmp_path) as server, Client(server.endpoint, token) as agent:
        assert refusal(await agent.get("/api/v1/nodes")) == (403, "Forbidden")
        head, payload, signature = token.split(".")
        forged = f"{head}.{payload}.{signature[::-1]}"
    async with ApiServer(tmp_path) as server, Client(server.endpoint, forged) as stranger:
        assert refusal(await stranger.get("/api/v1/nodes")) == (401, "Unauthorized")


async def test_a_token_ends_with_its_time_its_pod_and_its_account():
    time = datetime(2026, 11, 29, 12, tzinfo=UTC)
    async with ApiServer(now=lambda: time) as server, Client(server.endpoint) as api:
        accounts = "/api/v1/namespaces/gpumend/serviceaccounts"
        await api.created(accounts, {"metadata": {"name": "agent"}})
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
        await api.created(PODS, {"metadata": {"name": "p"}, "spec": spec})
        bound = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}

        async def token(spec):
            made = await api.created(f"{accounts}/agent/token", {"spec": spec})
            return made["status"]["token"]

        async def code(token):
            async with Client(server.endpoint, token) as agent:
                return (await agent.get("/api/v1/nodes")).status_code

        of_pod, plain = await token(bound), await token({"expirationSeconds": 600})
        assert (await code(of_pod), await code(plain)) == (403, 403)
        await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert (await code(of_pod), await code(plain)) == (401, 403)
        time += timedelta(seconds=600)
        assert await code(plain) == 401
        fresh = await token({})
        await api.delete(f"{accounts}/agent")
        assert await code(fresh) == 401


async def test_a_fault_fails_as_often_as_it_was_ordered():
    async with ApiServer() as server, Client(server.endpoint) as api:
        fault = Fault(verb="create", path="/configmaps$", times=2, code=503, retry_after_s=1)
        server.faults.order(fault)
        for _ in range(2):
            answer = await api.post(MAPS, {"metadata": {"name": "a"}})
            assert answer.status_code == 503
            assert answer.headers["Retry-After"] == "1"
        await make(api, "a")
        assert fault.seen == 2


async def test_a_dropped_answer_leaves_the_write_done_and_logged():
    async with ApiServer() as server, Client(server.endpoint) as api:
        server.faults.order(Fault(verb="create", drop=True))
        with pytest.raises(httpx.HTTPError):
            await api.post(MAPS, {"metadata": {"name": "a"}})
        assert await names(api) == ["a"]
        assert '"verb":"create"' in server.endpoint.audit.read_text()


async def test_a_fault_may_be_ordered_over_http():
    async with ApiServer() as server, Client(server.endpoint) as api:
        answer = await api.post("/sim/faults", {"verb": "get", "code": 500})
        assert answer.status_code == 200
        assert (await api.get(f"{MAPS}/a")).status_code == 500
        assert (await api.get(f"{MAPS}/a")).status_code == 404
        assert (await api.post("/sim/faults", {"colour": "red"})).status_code == 400
        await api.post("/sim/faults", {"times": 9, "code": 500})
        await api.delete("/sim/faults")
        assert (await api.get(MAPS)).status_code == 200


async def test_broken_watches_end_without_a_word():
    async with ApiServer() as server, Client(server.endpoint) as api:
        await make(api, "a")
        async with api.watch(MAPS) as watch:
            assert (await watch.next())[0] == "ADDED"
            server.close_watches()
            with pytest.raises(httpx.HTTPError):
                await watch.end()
        assert await names(api) == ["a"]


async def test_a_watch_that_falls_behind_a_compaction_is_told_so():
    async with ApiServer() as server, Client(server.endpoint) as api:
        first = await make(api, "a")
        await make(api, "b")
        await api.post("/sim/compact", {})
        async with api.watch(MAPS, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
            (event,) = await watch.end()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


async def test_the_window_bounds_what_is_remembered():
    async with ApiServer(window=10) as server, Client(server.endpoint) as api:
        first = await make(api, "a")
        for i in range(30):
            await api.patch(f"{MAPS}/a", {"data": {"i": str(i)}})
        async with api.watch(MAPS, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
            (event,) = await watch.end()
        assert event["object"]["code"] == 410
        recent = str(server.store.version - 10)
        async with api.watch(MAPS, resourceVersion=recent) as watch:
            assert (await watch.next())[0] == "MODIFIED"


async def budget(api, **spec):
    body = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec}}
    await api.created(BUDGETS, body)


async def pod(api, name, ready="True", **meta):
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    body = {"metadata": {"name": name, "labels": {"app": "x"}, **meta}, "spec": spec}
    await api.created(PODS, body)
    conditions = [{"type": "Ready", "status": ready}]
    status = {"status": {"phase": "Running", "conditions": conditions}}
    await api.patch(f"{PODS}/{name}/status", status, STRATEGIC)


async def seen(watch, **wanted):
    while True:
        _, found = await watch.next()
        if wanted.items() <= found.get("status", {}).items():
            return found


async def test_the_disruption_controller_keeps_the_status_of_budgets():
    async with ApiServer(disruption_controller=True) as server, Client(server.endpoint) as api:
        await budget(api, minAvailable=1)
        async with api.watch(BUDGETS) as watch:
            await pod(api, "p1")
            await pod(api, "p2")
            await seen(watch, disruptionsAllowed=1, currentHealthy=2, expectedPods=2)
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1"}}
            assert (await api.post(f"{PODS}/p1/eviction", body)).status_code == 201
            await seen(watch, disruptionsAllowed=0, currentHealthy=1)
            body["metadata"] = {"name": "p2"}
            assert refusal(await api.post(f"{PODS}/p2/eviction", body)) == (429, "TooManyRequests")


async def test_percentages_count_what_the_owner_wants():
    async with ApiServer(disruption_controller=True) as server, Client(server.endpoint) as api:
        sets = "/apis/apps/v1/namespaces/gpumend/replicasets"
        template = {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template}
        owner = await api.created(sets, {"metadata": {"name": "r"}, "spec": spec})
        uid = owner["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid}
        owned = {"ownerReferences": [{**reference, "controller": True}]}
        await budget(api, maxUnavailable="50%")
        async with api.watch(BUDGETS) as watch:
            await pod(api, "p1", **owned)
            await pod(api, "p2", **owned)
            found = await seen(watch, currentHealthy=2, expectedPods=3)
            assert found["status"]["desiredHealthy"] == 1
            assert found["status"]["disruptionsAllowed"] == 1
