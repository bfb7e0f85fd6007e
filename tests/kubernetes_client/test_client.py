"""The client against a server that answers as told, breaks, or says nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
import yaml
from aiohttp import web
from kubernetes.aio.config import incluster_config

from activities.adapters import kubernetes
from activities.adapters.kubernetes import KubernetesApi, connect
from activities.adapters.kubernetes_access import NotConfigured, load_access
from fleet.errors import Ambiguous, Expired, TooManyRequests, Transient
from fleet.ports import PatchType

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
NODE = "/api/v1/nodes/n1"


def kubeconfig(directory, server: str, token: str = "secret") -> str:
    path = directory / "kubeconfig"
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


@asynccontextmanager
async def serving(directory, handler: Handler) -> AsyncIterator[KubernetesApi]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with connect(kubeconfig(directory, f"http://{host}:{port}")) as api:
            yield api
    finally:
        await runner.cleanup()


@asynccontextmanager
async def breaking(directory, answer: bytes) -> AsyncIterator[KubernetesApi]:
    """A server that reads a request, sends these bytes and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, connect(kubeconfig(directory, f"http://127.0.0.1:{port}")) as api:
        yield api


async def follow(api: KubernetesApi, path: str) -> list[str]:
    async with api.watch(path, resource_version="1") as events:
        return [event.type async for event in events]


async def test_each_method_is_the_request_that_the_api_knows(tmp_path):
    seen = []

    async def echo(request: web.Request) -> web.Response:
        text = await request.text()
        seen.append((request.method, request.path_qs, request.content_type, text))
        assert request.headers["Authorization"] == "Bearer secret"
        return web.json_response({"items": [], "metadata": {"resourceVersion": "9"}})

    async with serving(tmp_path, echo) as api:
        await api.get(NODE)
        page = await api.page(
            "/api/v1/pods", query={"fieldSelector": "spec.nodeName=n1"}, limit=2, token="t=="
        )
        await api.create("/api/v1/namespaces/a/pods/p/eviction", {"kind": "Eviction"})
        await api.patch(NODE, {"a": 1}, PatchType.MERGE)
        await api.patch(NODE, [{"op": "test"}], PatchType.JSON)
        await api.delete("/api/v1/namespaces/a/pods/p", uid="u1", grace_seconds=30)
    assert page.resource_version == "9"
    assert [(method, path) for method, path, _, _ in seen] == [
        ("GET", NODE),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=2&continue=t%3D%3D"),
        ("POST", "/api/v1/namespaces/a/pods/p/eviction"),
        ("PATCH", NODE),
        ("PATCH", NODE),
        ("DELETE", "/api/v1/namespaces/a/pods/p"),
    ]
    assert seen[3][2] == "application/merge-patch+json"
    assert seen[4][2] == "application/json-patch+json"
    assert json.loads(seen[5][3])["preconditions"] == {"uid": "u1"}


async def test_a_page_hands_on_the_token_of_the_next(tmp_path):
    async def paged(request: web.Request) -> web.Response:
        token = request.query.get("continue")
        metadata = {"resourceVersion": "5", **({} if token else {"continue": "more"})}
        return web.json_response({"items": [{"n": token}], "metadata": metadata})

    async with serving(tmp_path, paged) as api:
        first = await api.page("/api/v1/nodes")
        second = await api.page("/api/v1/nodes", token=first.next_page)
    assert (first.next_page, second.next_page) == ("more", "")
    assert second.items == ({"n": "more"},)


async def test_a_grace_below_one_second_never_leaves_the_process(tmp_path):
    async def never(request: web.Request) -> web.Response:
        raise AssertionError("sent")

    async with serving(tmp_path, never) as api:
        for grace in (0, -5):
            with pytest.raises(ValueError, match="still be running"):
                await api.delete("/api/v1/namespaces/a/pods/p", uid="u", grace_seconds=grace)


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{", b"not http\r\n\r\n"],
    ids=["no answer", "half an answer", "garbage"],
)
async def test_a_lost_answer_to_a_write_is_ambiguous_and_to_a_read_is_not(tmp_path, answer):
    async with breaking(tmp_path, answer) as api:
        with pytest.raises(Ambiguous):
            await api.patch(NODE, {}, PatchType.MERGE)
        with pytest.raises(Ambiguous):
            await api.create("/api/v1/namespaces/a/pods", {})
        with pytest.raises(Transient):
            await api.get(NODE)


async def test_a_request_that_was_never_sent_is_transient_even_for_a_write(tmp_path):
    # Port 9 (discard) on loopback: nothing listens.
    async with connect(kubeconfig(tmp_path, "http://127.0.0.1:9")) as api:
        with pytest.raises(Transient, match="was not sent"):
            await api.patch(NODE, {}, PatchType.MERGE)


async def test_a_server_that_says_nothing_is_given_up_after_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(kubernetes, "REQUEST", aiohttp.ClientTimeout(total=0.05))
    forever = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        await forever.wait()
        raise AssertionError

    async with serving(tmp_path, silent) as api:
        with pytest.raises(Ambiguous):
            await api.patch(NODE, {}, PatchType.MERGE)


async def test_expired_credentials_are_read_again_once(tmp_path):
    tokens = []

    async def strict(request: web.Request) -> web.Response:
        tokens.append(request.headers["Authorization"])
        if tokens[-1] == "Bearer new":
            return web.json_response({"ok": True})
        kubeconfig(tmp_path, f"http://{request.host}", token="new")
        return web.json_response({"code": 401}, status=401)

    async with serving(tmp_path, strict) as api:
        assert await api.get(NODE) == {"ok": True}
    assert tokens == ["Bearer secret", "Bearer new"]


async def test_an_overloaded_server_slows_the_whole_client_but_a_budget_does_not(
    tmp_path, monkeypatch
):
    slept = []
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real_sleep(0)

    async def busy(request: web.Request) -> web.Response:
        if "eviction" in request.path:
            details = {"causes": [{"reason": "DisruptionBudget"}], "retryAfterSeconds": 10}
            return web.json_response({"code": 429, "details": details}, status=429)
        return web.Response(status=429, headers={"Retry-After": "3600"}, text="busy")

    async with serving(tmp_path, busy) as api:
        monkeypatch.setattr(asyncio, "sleep", sleep)
        with pytest.raises(TooManyRequests):
            await api.create("/api/v1/namespaces/a/pods/p/eviction", {})
        with pytest.raises(TooManyRequests):
            await api.get(NODE)
        assert not any(slept)
        with pytest.raises(TooManyRequests):
            await api.get(NODE)
    assert 9 < max(slept) <= kubernetes.LONGEST_PAUSE


async def test_a_watch_yields_events_and_bookmarks_and_ends_with_the_server(tmp_path):
    async def stream(request: web.Request) -> web.StreamResponse:
        assert request.query["resourceVersion"] == "5"
        assert request.query["allowWatchBookmarks"] == "true"
        answer = web.StreamResponse()
        await answer.prepare(request)
        for kind in ("ADDED", "MODIFIED", "BOOKMARK"):
            await answer.write(json.dumps({"type": kind, "object": {}}).encode() + b"\n")
        return answer

    async with (
        serving(tmp_path, stream) as api,
        api.watch("/api/v1/nodes", resource_version="5") as events,
    ):
        kinds = [event.type async for event in events]
    assert kinds == ["ADDED", "MODIFIED", "BOOKMARK"]


async def test_a_watch_from_too_long_ago_is_expired_by_answer_or_by_event(tmp_path):
    async def gone(request: web.Request) -> web.StreamResponse:
        status = {"kind": "Status", "code": 410, "reason": "Expired"}
        if request.path.endswith("/pods"):
            return web.json_response(status, status=410)
        return web.Response(body=json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")

    async with serving(tmp_path, gone) as api:
        for path in ("/api/v1/pods", "/api/v1/nodes"):
            with pytest.raises(Expired):
                await follow(api, path)


async def test_a_watch_that_breaks_or_falls_silent_is_transient(tmp_path, monkeypatch):
    monkeypatch.setattr(kubernetes, "WATCH", aiohttp.ClientTimeout(total=None, sock_read=0.05))
    forever = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await forever.wait()
        return answer

    async with serving(tmp_path, silent) as api:
        with pytest.raises(Transient):
            await follow(api, "/api/v1/nodes")
    half = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"
    async with breaking(tmp_path, half) as api:
        with pytest.raises(Transient):
            await follow(api, "/api/v1/nodes")


async def test_five_hundred_patches_at_once_share_a_bounded_pool(tmp_path):
    running, most = 0, 0

    async def count(request: web.Request) -> web.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return web.json_response({})

    async with serving(tmp_path, count) as api, asyncio.TaskGroup() as group:
        for _ in range(500):
            group.create_task(api.patch(NODE, {}, PatchType.MERGE))
    assert most <= kubernetes.CONNECTIONS


@pytest.fixture
def in_a_pod(tmp_path, monkeypatch):
    """What a Pod finds in its environment and on its disk."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("of-a-pod\n")
    authority.write_text("authority")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    return token


async def test_in_a_pod_the_service_account_is_used_and_its_token_is_read_again(in_a_pod):
    access = await load_access()
    assert access.configuration.host == "https://127.0.0.1:443"
    assert await access.authorization() == "bearer of-a-pod"


async def test_a_pod_without_a_token_says_so(in_a_pod):
    in_a_pod.unlink()
    with pytest.raises(NotConfigured, match="service account"):
        await load_access()


async def test_a_kubeconfig_goes_before_the_service_account(in_a_pod, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, "http://127.0.0.1:9"))
    access = await load_access()
    assert access.configuration.host == "http://127.0.0.1:9"


async def test_a_kubeconfig_that_is_being_written_leaves_the_old_credentials(tmp_path):
    path = kubeconfig(tmp_path, "http://127.0.0.1:9")
    access = await load_access(path)
    (tmp_path / "kubeconfig").write_text("{")
    await access.renew()
    assert await access.authorization() == "Bearer secret"


@pytest.mark.parametrize("text", [None, "", "{", "a: [", "clusters: 3"])
async def test_a_bad_kubeconfig_says_what_to_do(tmp_path, text):
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(NotConfigured, match="set KUBECONFIG") as caught:
        async with connect(str(path)):
            pass
    assert "Error" not in str(caught.value)
