"""Lists: in pages that together show one moment, chosen by selectors."""

import base64
import binascii
import json
from typing import Any

from pydantic_core import to_json

from simulator.apiserver.call import Call
from simulator.apiserver.history import Key, Stored
from simulator.apiserver.selectors import everything, selector
from simulator.apiserver.status import ApiError, bad_request
from simulator.apiserver.store import Store


class Page:
    """A part of a list: its items, and how to go on."""

    __slots__ = ("items", "meta")

    def __init__(self, items: list[Stored], meta: dict[str, Any]) -> None:
        self.items = items
        self.meta = meta

    def body(self, call: Call) -> bytes:
        """As JSON; the items are not serialised again."""
        kind = call.kind
        head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": self.meta}
        return to_json(head)[:-1] + b',"items":[' + b",".join(i.item for i in self.items) + b"]}"


def page(store: Store, call: Call) -> Page:
    """The page that a list request asks for."""
    query = call.query
    limit = _number(query, "limit")
    test = selector(call.kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    version, after, objects = _moment(store, call, limit)
    chosen: list[Stored] = []
    keys = sorted(key for key in objects if key > after and _in(call.namespace, key))
    for place, key in enumerate(keys):
        if test(objects[key].object):
            chosen.append(objects[key])
        if limit and len(chosen) == limit and place + 1 < len(keys):
            meta: dict[str, Any] = {
                "resourceVersion": str(version),
                "continue": _token(version, key),
            }
            if test is everything:
                meta["remainingItemCount"] = len(keys) - place - 1
            return Page(chosen, meta)
    return Page(chosen, {"resourceVersion": str(version)})


def read_version(text: str) -> int:
    """A resourceVersion of a request as a number."""
    if not text.isdigit():
        raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}"')
    return int(text)


def check_version(store: Store, text: str) -> int:
    """A resourceVersion of a list request as a number; 504 if it lies in the future."""
    version = read_version(text)
    if version > store.version:
        message = f"Timeout: Too large resource version: {version}, current: {store.version}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        raise ApiError(504, "Timeout", message, {"causes": causes}, retry_after_s=1)
    return version


def _moment(store: Store, call: Call, limit: int) -> tuple[int, Key, dict[Key, Stored]]:
    """Version, key to go on after, and the objects as they were at that version."""
    query, nothing = call.query, ("", "")
    if token := query.get("continue"):
        if query.get("resourceVersion", "0") not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        version, after = _read_token(token)
        return version, after, store.at(call.kind, version)
    asked = query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    if asked not in ("", "0"):
        version = check_version(store, asked)
        if match == "Exact" or (limit and not match):
            return version, nothing, store.at(call.kind, version)
    return store.version, nothing, store.objects(call.kind)


def _in(namespace: str, key: Key) -> bool:
    return not namespace or key[0] == namespace


def _number(query: Any, name: str) -> int:
    text = query.get(name, "") or "0"
    if not text.isdigit():
        raise bad_request(f'{name}: Invalid value: "{text}"')
    return int(text)


def _token(version: int, key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *key]).encode()).decode().rstrip("=")


def _read_token(text: str) -> tuple[int, Key]:
    try:
        padded = text + "=" * (-len(text) % 4)
        version, namespace, name = json.loads(base64.urlsafe_b64decode(padded))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError, binascii.Error) as error:
        raise bad_request("continue key is not valid") from error
