"""Strategic merge patch: merge patch, but lists with a merge key are merged by it.

A pure function over the document, the patch and the merge keys of the kind (`schema.py`).
The document that goes in is never changed.
"""

from collections.abc import Iterable
from typing import Any

from simulator.apiserver.schema import Type
from simulator.apiserver.status import bad_request

DIRECTIVE = "$patch"
DELETE_FROM = "$deleteFromPrimitiveList/"
RETAIN = "$retainKeys"


def strategic_patch(schema: Type | None, target: Any, patch: Any) -> Any:
    """Apply `patch` to `target`, whose type is `schema` (None: no lists merge below here)."""
    if not isinstance(patch, dict):
        return patch
    if patch.get(DIRECTIVE) == "replace":
        return _clean(_without(patch, DIRECTIVE))
    if patch.get(DIRECTIVE) == "delete":
        return {}
    merged = dict(target) if isinstance(target, dict) else {}
    if RETAIN in patch:
        merged = {key: value for key, value in merged.items() if key in patch[RETAIN]}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(schema, merged, key, value)
    _delete_from_lists(merged, patch)
    return merged


def _merge_field(schema: Type | None, merged: dict[str, Any], key: str, value: Any) -> None:
    field = schema.field(key) if schema else None
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, list) and field and field.merges:
        current = merged.get(key)
        items = current if isinstance(current, list) else []
        merged[key] = _merge_list(field.type, field.merge_key, items, value)
    elif isinstance(value, dict):
        merged[key] = strategic_patch(field.type if field else None, merged.get(key), value)
    else:
        merged[key] = value


def _merge_list(schema: Type | None, key: str, items: list[Any], patch: list[Any]) -> list[Any]:
    if not key:
        return items + [value for value in dict.fromkeys(patch) if value not in items]
    if any(not isinstance(item, dict) for item in patch):
        raise bad_request(f"a list merged by {key} holds something that is no object")
    if any(item.get(DIRECTIVE) == "replace" for item in patch):
        return [_clean(item) for item in patch if DIRECTIVE not in item]
    result = list(items)
    for item in patch:
        _merge_item(schema, key, result, item)
    return result


def _merge_item(schema: Type | None, key: str, items: list[Any], patch: dict[str, Any]) -> None:
    if key not in patch:
        raise bad_request(f"map: {patch} does not contain declared merge key: {key}")
    places = [i for i, item in enumerate(items) if item.get(key) == patch[key]]
    if patch.get(DIRECTIVE) == "delete":
        for place in reversed(places):
            del items[place]
    elif places:
        items[places[0]] = strategic_patch(schema, items[places[0]], patch)
    else:
        items.append(strategic_patch(schema, {}, patch))


def _delete_from_lists(merged: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, values in patch.items():
        if key.startswith(DELETE_FROM) and isinstance(
            merged.get(key.removeprefix(DELETE_FROM)), list
        ):
            name = key.removeprefix(DELETE_FROM)
            merged[name] = [value for value in merged[name] if value not in values]


def _without(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def _clean(value: Any) -> Any:
    """What is stored of a patch that replaces: no nulls, no directives."""
    if isinstance(value, dict):
        kept: Iterable[tuple[str, Any]] = value.items()
        return {k: _clean(v) for k, v in kept if v is not None and not k.startswith("$")}
    return [_clean(item) for item in value] if isinstance(value, list) else value
