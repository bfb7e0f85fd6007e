"""The shape of the built-in kinds: which fields there are, of which type, merged by which key.

Read from `schema.json`, which `generate_schema.py` makes from the OpenAPI documents of Kubernetes.
As in the real server, a field that is not known is dropped, and an empty list or map is nothing.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("schema.json")


class ShapeError(Exception):
    """A value has the wrong type; the message names the field."""


class Field:
    """What a field, an item of a list or a value of a map holds.

    Read from one word: `string`, `@Type`, `[]item`, `[=key]item` (merged by key), `{}value`, each
    with `!` at its end where the field is required.
    """

    __slots__ = ("_word", "item", "merge_key", "merges", "required", "shape", "type")

    def __init__(self, word: str) -> None:
        self.required = word.endswith("!")
        self._word = word = word.removesuffix("!")
        self.merges, self.merge_key = word.startswith("[="), ""
        self.item: Field | None = None
        self.type: Type | None = None
        if word.startswith("["):
            head, _, rest = word.partition("]")
            self.shape, self.merge_key, self.item = "list", head[2:], Field(rest)
        elif word.startswith("{}"):
            self.shape, self.item = "map", Field(word[2:])
        elif word.startswith("@"):
            self.shape = "object"
        else:
            self.shape = word

    def resolve(self, types: "dict[str, Type]") -> None:
        """Find the type that the word names; for a list of objects, the type of its items."""
        if self.item:
            self.item.resolve(types)
            self.type = self.item.type
        elif self.shape == "object":
            self.type = types[self._word[1:]]


class Type:
    """The fields of an object."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, words: dict[str, str]) -> None:
        self.name = name
        self.fields = {field: Field(word) for field, word in words.items()}

    def field(self, name: str) -> Field | None:
        """The field of this name, None if there is none."""
        return self.fields.get(name)


@cache
def _types() -> dict[str, Type]:
    types = {name: Type(name, words) for name, words in json.loads(_FILE.read_text()).items()}
    for found in types.values():
        for field in found.fields.values():
            field.resolve(types)
    return types


def type_of(kind: str) -> Type | None:
    """The type of a built-in kind, None where we know none (custom kinds)."""
    return _types().get(kind)


def shaped(
    kind: Type, value: dict[str, Any], path: str = "", known: dict[str, Any] | None = None
) -> dict[str, Any]:
    """`value` without unknown, null and empty fields; itself, if there are none.

    `known` is a shaped object before a change: what `value` shares with it is not looked at again.
    Raises ShapeError for a value of the wrong type.
    """
    changed: dict[str, Any] = {}
    dropped: list[str] = []
    known = known or {}
    for name, content in value.items():
        field = kind.fields.get(name)
        if field is None or content is None:
            dropped.append(name)
            continue
        if content is known.get(name):
            continue
        kept = _shaped(field, content, f"{path}.{name}", known.get(name))
        if kept is not content:
            changed[name] = kept
        if not kept and field.item is not None and not field.required:
            dropped.append(name)
    if not changed and not dropped:
        return value
    result = {**value, **changed}
    for name in dropped:
        del result[name]
    return result


def _shaped(field: Field, value: Any, path: str, known: Any = None) -> Any:
    if field.shape in _TIMES:
        return _time(value, _TIMES[field.shape], path)
    check = _SCALARS.get(field.shape)
    if check is not None:
        if not check(value):
            raise ShapeError(f"{path[1:]}: {type(value).__name__} where {field.shape} is wanted")
        return value
    if field.shape == "list":
        return _shaped_list(field, _of_type(value, list, path), path, known)
    mapping = _of_type(value, dict, path)
    if field.type is not None and field.item is None:
        return shaped(field.type, mapping, path, known if isinstance(known, dict) else None)
    return _shaped_map(field, mapping, path)


def _shaped_list(field: Field, value: list[Any], path: str, known: Any) -> list[Any]:
    assert field.item is not None
    shared = {id(item) for item in known} if isinstance(known, list) else ()
    kept = [
        item if id(item) in shared else _shaped(field.item, item, f"{path}[{i}]")
        for i, item in enumerate(value)
    ]
    return value if all(map(_same, kept, value)) else kept


def _shaped_map(field: Field, value: dict[str, Any], path: str) -> dict[str, Any]:
    assert field.item is not None
    kept = {k: _shaped(field.item, v, f"{path}.{k}") for k, v in value.items()}
    return value if all(kept[k] is v for k, v in value.items()) else kept


def _same(one: Any, other: Any) -> bool:
    return one is other


def _of_type(value: Any, wanted: type, path: str) -> Any:
    if not isinstance(value, wanted):
        raise ShapeError(f"{path[1:]}: {type(value).__name__} where {wanted.__name__} is wanted")
    return value


def _time(value: Any, form: "re.Pattern[str]", path: str) -> str:
    """A time as the server writes it: UTC, whole seconds (Time) or six digits (MicroTime)."""
    if not isinstance(value, str):
        raise ShapeError(f"{path[1:]}: {type(value).__name__} where a time is wanted")
    if form.fullmatch(value):
        return value
    micro = form is _TIMES["microtime"]
    if micro and not _SIX_DIGITS.search(value):
        raise ShapeError(f"{path[1:]}: parsing time {value!r}: six digits of a second are wanted")
    try:
        moment = datetime.fromisoformat(value).astimezone(UTC)
    except ValueError as error:
        raise ShapeError(f"{path[1:]}: parsing time {value!r}: no RFC 3339 time") from error
    precision = "microseconds" if micro else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


_SIX_DIGITS = re.compile(r"\.\d{6}(Z|[+-]\d\d:\d\d)$")
_TIMES = {
    "time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    "microtime": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"),
}
_SCALARS: dict[str, Callable[[Any], bool]] = {
    "string": _is_string,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, float) or _is_integer(value),
    "quantity": lambda value: isinstance(value, str | float) or _is_integer(value),
    "intstr": lambda value: isinstance(value, str) or _is_integer(value),
    "any": lambda _: True,
}
