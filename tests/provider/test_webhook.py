"""The adapter and the reference provider, each exchange held to the OpenAPI file."""

import asyncio
import sys

import httpx
import pytest

from activities.adapters.provider import WebhookProvider, provider_of
from activities.adapters.provider_access import ProviderAccess
from fleet.errors import Ambiguous, Conflict, Refused, TooManyRequests, Transient
from fleet.machine import Change, MachineAddress, OperationState, Power
from simulator.provider import Fault, ProviderServer

N1 = MachineAddress("n1", "cloud:///zone a/i-1", "s-1")
CHANGING = r"^/v1/operations"


async def ended(provider, operation):
    for _ in range(500):
        found = await provider.operation(operation)
        if found.state is not OperationState.RUNNING:
            return found
    raise AssertionError(f"{operation} does not end")


async def test_a_change_is_begun_once_polled_and_kept(provider, server, openapi):
    assert await provider.abilities() == set(Change)
    assert await provider.power(N1) is Power.ON
    assert await provider.operation("op-1") is None
    first = await provider.begin("op-1", Change.STOP, N1)
    assert (first.state, first.machine) == (OperationState.RUNNING, N1)
    assert (await ended(provider, "op-1")).state is OperationState.DONE
    again = await provider.begin("op-1", Change.STOP, N1)
    assert again.state is OperationState.DONE
    assert await provider.power(N1) is Power.OFF
    await provider.begin("op-2", Change.START, N1)
    await ended(provider, "op-2")
    await provider.begin("op-1", Change.STOP, N1)
    assert await provider.power(N1) is Power.ON
    assert {("PUT", "/v1/operations/{id}", code) for code in ("200", "202")} <= openapi.used


async def test_two_that_ask_at_once_begin_one_operation(provider, server):
    many = await asyncio.gather(*(provider.begin("op", Change.RESTART, N1) for _ in range(8)))
    assert len({each.id for each in many}) == 1
    await ended(provider, "op")
    assert server.records.machine("n1")["boots"] == 2


async def test_an_id_is_for_one_change_of_one_machine(provider):
    await provider.begin("op", Change.STOP, N1)
    with pytest.raises(Conflict):
        await provider.begin("op", Change.TERMINATE, N1)


async def test_a_launch_names_its_successor(provider):
    await provider.begin("op", Change.LAUNCH, N1)
    assert (await ended(provider, "op")).successor == "n1-next"


async def test_short_capacity_is_a_failure_with_a_reason(provider, server):
    server.faults.order(Fault(method="PUT", fail="capacity"))
    await provider.begin("op", Change.LAUNCH, N1)
    found = await ended(provider, "op")
    assert (found.state, found.reason) == (OperationState.FAILED, "capacity")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(method="PUT", code=500), Ambiguous),
        (Fault(method="PUT", code=504), Ambiguous),
        (Fault(method="PUT", code=503), Transient),
        (Fault(method="PUT", code=429), TooManyRequests),
        (Fault(method="PUT", code=422), Refused),
        (Fault(method="PUT", lost=True), Ambiguous),
    ],
)
async def test_what_a_failed_change_may_have_done_is_said_by_the_error(
    provider, server, fault, error
):
    server.faults.order(fault)
    with pytest.raises(error):
        await provider.begin("op", Change.STOP, N1)
    found = await provider.operation("op")
    assert (found is not None) is fault.lost


async def test_reads_are_repeated_and_then_the_caller_hears_of_it(provider, server):
    server.faults.order(Fault(method="GET", code=500, times=2))
    assert await provider.power(N1) is Power.ON
    server.faults.order(Fault(method="GET", code=500, times=3))
    with pytest.raises(Transient):
        await provider.power(N1)


async def test_a_silent_provider_is_transient_for_reads_and_ambiguous_for_changes(server):
    async with httpx.AsyncClient(timeout=httpx.Timeout(0.05, connect=5)) as impatient:
        provider = WebhookProvider(ProviderAccess(server.url), impatient, pauses=())
        server.faults.order(Fault(delay_s=5, times=2))
        with pytest.raises(Transient):
            await provider.power(N1)
        with pytest.raises(Ambiguous):
            await provider.begin("op", Change.STOP, N1)


async def test_a_provider_that_is_away_was_never_asked(client):
    away = WebhookProvider(ProviderAccess("http://127.0.0.1:9"), client, pauses=())
    with pytest.raises(Transient):
        await away.begin("op", Change.STOP, N1)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>", b'{"power": "asleep"}'])
async def test_an_answer_that_is_none_says_nothing(body):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    async with httpx.AsyncClient(transport=transport) as http:
        provider = WebhookProvider(ProviderAccess("http://p"), http, pauses=())
        with pytest.raises(Transient):
            await provider.power(N1)
        with pytest.raises(Ambiguous):
            await provider.begin("op", Change.STOP, N1)


async def test_an_answer_about_another_operation_is_none():
    said = {"id": "other", "change": "stop", "machine": {"node": "n1"}, "state": "done"}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=said))
    async with httpx.AsyncClient(transport=transport) as http:
        provider = WebhookProvider(ProviderAccess("http://p"), http, pauses=())
        with pytest.raises(Transient, match="asked about op"):
            await provider.operation("op")


async def test_the_token_is_read_anew_for_every_request(tmp_path, client):
    file = tmp_path / "token"
    file.write_text("old\n")
    async with ProviderServer(tmp_path / "p", token="new") as server:
        provider = WebhookProvider(ProviderAccess(server.url, token_file=file), client, pauses=())
        with pytest.raises(Refused, match="401"):
            await provider.abilities()
        file.write_text("new\n")
        assert await provider.abilities()


async def test_an_operation_that_was_cut_short_goes_on_in_the_next_provider(tmp_path, client):
    async with ProviderServer(tmp_path, seconds=60) as server:
        server.machines.add("n1")
        provider = WebhookProvider(ProviderAccess(server.url), client)
        await provider.begin("op", Change.STOP, N1)
    async with ProviderServer(tmp_path) as server:
        provider = WebhookProvider(ProviderAccess(server.url), client)
        assert (await ended(provider, "op")).state is OperationState.DONE
        assert await provider.power(N1) is Power.OFF


async def test_without_a_url_there_is_nobody_to_ask():
    async with provider_of({}) as nobody:
        assert await nobody.abilities() == frozenset()
        assert await nobody.power(N1) is Power.UNKNOWN
        assert await nobody.operation("op") is None
        with pytest.raises(Refused, match="GPUMEND_PROVIDER_URL"):
            await nobody.begin("op", Change.STOP, N1)


async def test_the_reference_provider_runs_as_a_process(tmp_path):
    flags = ("-m", "simulator.provider", "--dir", str(tmp_path), "--machine", "n1")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *flags, stdout=pipe)
    try:
        assert process.stdout
        url = (await process.stdout.readline()).decode().split("url=")[1].strip()
        async with provider_of({"GPUMEND_PROVIDER_URL": url}) as provider:
            assert await provider.power(N1) is Power.ON
    finally:
        process.terminate()
        await process.wait()
