"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), as pure functions.

The document that goes in is never changed; what comes out shares its untouched parts.
Strategic merge patch is in `strategic.py`.
"""

import copy
from typing import Any

from simulator.apiserver.status import ApiError, bad_request

MAX_OPERATIONS = 10_000


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null takes away, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(document: Any, operations: Any) -> Any:
    """RFC 6902; 400 for a malformed patch, 422 for one that does not apply (as a failed test)."""
    if not isinstance(operations, list) or not all(isinstance(o, dict) for o in operations):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        message = (
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}"
        )
        raise ApiError(413, "RequestEntityTooLarge", message)
    result = copy.deepcopy(document)
    for operation in operations:
        result = _apply(result, operation)
    return result


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    how = operation.get("op")
    path = _pointer(operation.get("path"))
    match how:
        case "add":
            return _add(document, path, copy.deepcopy(operation.get("value")))
        case "replace":
            _get(document, path)
            return _put(document, path, copy.deepcopy(operation.get("value")))
        case "remove":
            return _remove(document, path)
        case "test":
            return _test(document, path, operation)
        case "move":
            source = _pointer(operation.get("from"))
            value = _get(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(
                document, path, copy.deepcopy(_get(document, _pointer(operation.get("from"))))
            )
    raise _does_not_apply(f"Unexpected kind: {how}")


def _does_not_apply(why: str) -> ApiError:
    return ApiError(
        422, "Invalid", f"the server rejected our request due to an error in our request: {why}"
    )


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise _does_not_apply(f"invalid path {text!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _index(items: list[Any], step: str, end: int) -> int:
    if step == "-" and end > len(items) - 1:
        return len(items)
    if not step.isdigit() or int(step) > end:
        raise _does_not_apply(f"invalid array index {step!r}")
    return int(step)


def _get(document: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(document, list):
            document = document[_index(document, step, len(document) - 1)]
        elif isinstance(document, dict) and step in document:
            document = document[step]
        else:
            raise _does_not_apply(f"missing path /{'/'.join(path)}")
    return document


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        parent[_index(parent, path[-1], len(parent) - 1)] = value
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise _does_not_apply(f"missing path /{'/'.join(path)}")
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    parent = _get(document, path[:-1]) if path else None
    if isinstance(parent, list):
        parent.insert(_index(parent, path[-1], len(parent)), value)
        return document
    return _put(document, path, value)


def _remove(document: Any, path: list[str]) -> Any:
    _get(document, path)
    if not path:
        raise _does_not_apply("cannot remove the whole document")
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        parent.pop(_index(parent, path[-1], len(parent) - 1))
    else:
        del parent[path[-1]]
    return document


def _test(document: Any, path: list[str], operation: dict[str, Any]) -> Any:
    wanted = operation.get("value")
    try:
        found = _get(document, path)
    except ApiError:
        if wanted is None:
            return document
        raise
    if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
        raise _does_not_apply(f"testing value {operation.get('path')} failed")
    return document
