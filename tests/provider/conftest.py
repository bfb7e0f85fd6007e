import httpx
import pytest

from activities.adapters.provider import WebhookProvider
from activities.adapters.provider_access import ProviderAccess
from simulator.provider import ProviderServer
from tests.provider.openapi import OpenApi


@pytest.fixture
def openapi():
    return OpenApi()


@pytest.fixture
async def server(tmp_path):
    async with ProviderServer(tmp_path / "provider") as running:
        running.machines.add("n1")
        yield running


@pytest.fixture
async def client(openapi):
    """Every exchange is held to the OpenAPI file."""

    async def hold(response):
        await response.aread()
        openapi.check(response.request, response)

    async with httpx.AsyncClient(timeout=5, event_hooks={"response": [hold]}) as http:
        yield http


@pytest.fixture
def provider(server, client):
    return WebhookProvider(ProviderAccess(server.url), client, pauses=(0.0, 0.0))
