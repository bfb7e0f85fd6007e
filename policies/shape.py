"""Plain values against the models: every wrong type, unknown key and unknown word at once.

What a value may be is said by the models; here are only the sentences.
"""

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from policies.mistakes import Mistake, Path
from policies.schema import Policy
from policies.terms import nearest, shown
from policies.yaml_tree import Tree

_WANTED = {
    "bool_type": ("a yes or a no", "write yes or no"),
    "int_type": ("a whole number", "write it in digits, without quotes"),
    "string_type": ("text", "put it in quotes"),
    "tuple_type": ("a list", "write it like [a, b]"),
    "mapping_type": ("a mapping", "write name: value"),
    "model_type": ("a mapping", "write name: value"),
}
_BOUNDS = {
    "greater_than_equal": ("too small", "ge"),
    "less_than_equal": ("too large", "le"),
    "too_short": ("too short", "min_length"),
    "too_long": ("too long", "max_length"),
    "string_too_short": ("too short", "min_length"),
    "string_too_long": ("too long", "max_length"),
}
_KEY = "[key]"


def check_shape(tree: Tree) -> tuple[Policy | None, list[Mistake]]:
    """Validate the tree's value: the policy, or the mistakes of its shape."""
    try:
        return Policy.model_validate(tree.value), []
    except ValidationError as problems:
        found = problems.errors(include_url=False)
        return None, [_mistake(tree, each) for each in _real(found)]


def path_of(error: ErrorDetails) -> Path:
    """Where an error stands; an unknown key of a mapping stands at its entry."""
    return tuple(each for each in error["loc"] if each != _KEY)


def _real(errors: list[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Without "too short" for lists that are so only because an item of theirs is wrong."""
    broken = {path[:end] for path in map(path_of, errors) for end in range(len(path))}
    yield from (e for e in errors if not (e["type"] == "too_short" and path_of(e) in broken))


def _mistake(tree: Tree, error: ErrorDetails) -> Mistake:
    path, kind, context = path_of(error), error["type"], error.get("ctx", {})
    if kind == "policy":
        return tree.mistake(path, context["what"], context["remedy"])
    if kind == "missing":
        what, remedy = f"{path[-1]} is missing", f"add it, like {path[-1]}: {_example(path)}"
        return tree.mistake(path[:-1], what, remedy)
    if kind == "extra_forbidden":
        remedy = nearest(path[-1], _keys(path[:-1]))
        return tree.mistake(path, f"there is no key {path[-1]!r} here", remedy, at_key=True)
    if kind == "enum":
        at_key = error["loc"][-1] == _KEY
        words = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        what = f"{shown(error['input'])} is not known here"
        quotes = isinstance(error["input"], bool)
        remedy = "put it in quotes" if quotes else nearest(error["input"], words)
        return tree.mistake(path, what, remedy, at_key)
    wanted, remedy = _WANTED.get(kind, ("", ""))
    if wanted:
        return tree.mistake(path, f"{shown(error['input'])} is not {wanted}", remedy)
    sentence, limit = _BOUNDS.get(kind, (error["msg"], ""))
    remedy = f"the bound is {context[limit]}" if limit else "change it to fit"
    return tree.mistake(path, f"{shown(error['input'])} is {sentence}", remedy)


def _keys(path: Path) -> tuple[str, ...]:
    """The keys that the model at a path knows."""
    model = _annotation(path)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return ()
    return tuple(each.alias or name for name, each in model.model_fields.items())


def _example(path: Path) -> object:
    model = _annotation(path[:-1])
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    return (model.model_fields[str(path[-1])].examples or ["..."])[0]


def _annotation(path: Path) -> Any:
    found: Any = Policy
    for step in path:
        found = _inner(found, step)
    return found


def _inner(annotation: Any, step: str | int) -> Any:
    """The type one step further down; None where the models say nothing."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        named = (each.annotation for name, each in fields if step in (name, each.alias))
        return _bare(next(named, None))
    if get_origin(annotation) is tuple or get_origin(annotation) is Mapping:
        return _bare(get_args(annotation)[0 if get_origin(annotation) is tuple else 1])
    return None


def _bare(annotation: Any) -> Any:
    """Without `| None`."""
    given = [each for each in get_args(annotation) if each is not type(None)]
    return given[0] if type(None) in get_args(annotation) else annotation
