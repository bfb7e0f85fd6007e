"""Raw HTTP to an API server: nothing between a test and the wire."""

import asyncio
import contextlib
import json
import ssl
from functools import cache

import httpx

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
PATIENCE_S = 60.0
"""A real server whose watch cache starts anew may take half a minute; nobody waits for ours."""


@cache
def _trust(ca):
    """Made once a server: reading certificates takes longer than most tests."""
    return False if ca is None else ssl.create_default_context(cafile=str(ca))


class Client:
    def __init__(self, endpoint, token=None):
        token = token or endpoint.tokens["admin"]
        self._http = httpx.AsyncClient(
            base_url=endpoint.url,
            headers={"Authorization": f"Bearer {token}"},
            verify=_trust(endpoint.ca),
            timeout=PATIENCE_S,
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self._http.aclose()

    async def get(self, path, **query):
        return await self._http.get(path, params=query)

    async def post(self, path, body, **query):
        return await self._http.post(path, json=body, params=query)

    async def put(self, path, body, **query):
        return await self._http.put(path, json=body, params=query)

    async def patch(self, path, body, kind=MERGE, **query):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": kind}
        return await self._http.patch(path, content=content, headers=headers, params=query)

    async def delete(self, path, options=None, **query):
        if options is None:
            return await self._http.request("DELETE", path, params=query)
        return await self._http.request("DELETE", path, json=options, params=query)

    async def raw(self, method, path, **arguments):
        return await self._http.request(method, path, **arguments)

    async def created(self, path, body):
        answer = await self.post(path, body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def read(self, path, **query):
        answer = await self.get(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    @contextlib.asynccontextmanager
    async def watch(self, path, **query):
        query = {"watch": "1", "timeoutSeconds": "60", **query}
        async with self._http.stream("GET", path, params=query) as answer:
            yield Watch(answer)


class Watch:
    def __init__(self, answer):
        self.status = answer.status_code
        self._answer = answer
        self._lines = answer.aiter_lines()

    async def next(self):
        """The next event as (type, object)."""
        async with asyncio.timeout(PATIENCE_S):
            event = json.loads(await anext(self._lines))
        return event["type"], event["object"]

    async def until(self, kind, name=None):
        """The next event of this type (and object), skipping others."""
        while True:
            found, obj = await self.next()
            if found == kind and name in (None, obj["metadata"].get("name")):
                return obj

    async def end(self):
        """All events until the server ends the watch."""
        async with asyncio.timeout(PATIENCE_S):
            return [json.loads(line) async for line in self._lines]

    async def body(self):
        return json.loads(await self._answer.aread())


def refusal(answer):
    """Code, reason and message of a refusal, checked for the shape of a Status."""
    body = answer.json()
    assert body["kind"] == "Status", body
    assert body["apiVersion"] == "v1"
    assert body["status"] == "Failure"
    assert body["code"] == answer.status_code
    return answer.status_code, body.get("reason", "")


def causes(answer):
    return answer.json().get("details", {}).get("causes", [])


async def eventually(question, wanted):
    """Ask until the answer is as wanted: the real server learns of new roles by watching."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await question()
            if answer.status_code == wanted:
                return answer
            await asyncio.sleep(0.02)
