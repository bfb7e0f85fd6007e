"""A request that is held: dropped or done when its client dies there, done when it is let go."""

import asyncio
import json

import pytest

from simulator.client import Api, ApiError

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def other(server):
    async with Api(server.endpoint.url, server.endpoint.tokens["admin"]) as api:
        yield api


async def lay(api, **fields):
    """Lay a tripwire; returns a task that ends when somebody has run into it."""
    body = {"verb": "create", "path": MAPS, "body": "held", **fields}
    return asyncio.create_task(api.create("/sim/tripwires", body))


async def held(api, tripwire):
    """Send a request into it; returns the task of that request, which hangs."""
    await asyncio.sleep(0.1)  # the tripwire is laid by a request of its own
    request = asyncio.create_task(api.create(MAPS, {"metadata": {"name": "held"}}))
    caught = await asyncio.wait_for(tripwire, 10)
    assert (caught["user"], caught["verb"], caught["path"]) == ("admin", "create", MAPS)
    assert not request.done()
    return request


async def exists(api):
    try:
        await api.get(f"{MAPS}/held")
    except ApiError as error:
        return error.code != 404
    return True


@pytest.mark.parametrize("after", [False, True])
async def test_a_client_that_dies_before_the_effect_leaves_none_and_after_it_leaves_it(
    api, other, server, after
):
    request = await held(other, await lay(api, after=after))
    assert await exists(api) is after
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    await api.create("/sim/release", {})
    await asyncio.sleep(0.1)
    assert await exists(api) is after
    logged = [json.loads(line) for line in server.endpoint.audit.read_text().splitlines()]
    assert any(event["objectRef"].get("name") == "held" for event in logged) is after


@pytest.mark.parametrize("after", [False, True])
async def test_a_request_that_is_let_go_is_answered_as_ever(api, other, after):
    request = await held(other, await lay(api, after=after))
    await api.create("/sim/release", {})
    assert (await asyncio.wait_for(request, 10))["metadata"]["name"] == "held"


async def test_only_the_first_request_that_matches_is_held(api, other):
    tripwire = await lay(api)
    await held(other, tripwire)
    await api.create(MAPS, {"metadata": {"name": "held-2"}})
