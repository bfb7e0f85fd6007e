"""From an understood request to the body of its answer. No sockets, no await."""

from dataclasses import replace
from typing import Any

from pydantic_core import from_json, to_json

from simulator.apiserver.call import Call
from simulator.apiserver.deletion import Deletion
from simulator.apiserver.eviction import Eviction
from simulator.apiserver.history import Stored
from simulator.apiserver.listing import page
from simulator.apiserver.registry import Admit, Clock, Registry
from simulator.apiserver.status import ApiError, bad_request, no_such_path
from simulator.apiserver.store import Store
from simulator.apiserver.tokens import Tokens

Answer = tuple[int, bytes]


class Api:
    """Does what a request asks for. Who may ask is settled before."""

    def __init__(self, store: Store, tokens: Tokens, now: Clock, admit: Admit) -> None:
        self._store = store
        self._tokens = tokens
        self.registry = Registry(store, now, admit)
        self.deletion = Deletion(store, now, admit)
        self.eviction = Eviction(store, now, self.registry, self.deletion)

    def do(self, call: Call, content_type: str, body: bytes) -> Answer:
        """The HTTP status and the JSON of the answer; ApiError for a failure."""
        if call.subresource not in ("", "status"):
            return self._special(call, content_type, body)
        if call.subresource == "status" and not call.kind.status:
            raise no_such_path()
        match call.verb:
            case "get":
                return 200, self.registry.existing(call).raw
            case "list":
                return 200, page(self._store, call).body(call)
            case "create" if not call.name:
                return 201, self.registry.create(call, read(content_type, body)).raw
            case "update" if call.name:
                return 200, self.registry.update(call, read(content_type, body)).raw
            case "patch" if call.name:
                return 200, self._patch(call, content_type, body).raw
            case "delete":
                return 200, to_json(self.deletion.delete(call, _options(content_type, body)))
            case "deletecollection":
                return 200, self._delete_all(call, _options(content_type, body))
        raise not_allowed()

    def _special(self, call: Call, content_type: str, body: bytes) -> Answer:
        match call.kind.resource, call.subresource, call.verb:
            case "pods", "eviction", "create":
                return 201, to_json(self.eviction.evict(call, read(content_type, body)))
            case "serviceaccounts", "token", "create":
                return 201, to_json(self._tokens.issue(call, read(content_type, body)))
        raise no_such_path()

    def _patch(self, call: Call, content_type: str, body: bytes) -> Stored:
        return self.registry.patch(call, content_type, parse(body))

    def _delete_all(self, call: Call, options: dict[str, Any]) -> bytes:
        chosen = page(self._store, call)
        for stored in chosen.items:
            namespace, name = stored.key
            one = replace(call, verb="delete", namespace=namespace, name=name)
            self.deletion.delete(one, options)
        return chosen.body(call)


def not_allowed() -> ApiError:
    """405: the path is there, the method is not."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)


def read(content_type: str, body: bytes) -> dict[str, Any]:
    """The object in the body of a request."""
    if content_type not in ("", "application/json", "*/*"):
        message = (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json"
        )
        raise ApiError(415, "UnsupportedMediaType", message)
    value = parse(body)
    if not isinstance(value, dict):
        raise bad_request("the body of the request is no JSON object")
    return value


def parse(body: bytes) -> Any:
    """The JSON in the body of a request; 400 if it is none."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise bad_request(f"the body of the request is no JSON: {error}") from error


def _options(content_type: str, body: bytes) -> dict[str, Any]:
    return read(content_type, body) if body.strip() else {}
