"""A value of an object that is computed when first asked for, and kept with it: as an attribute, or
as the answer of a function of it that lives in another module.

`functools.cached_property` takes a lock each first time up to Python 3.11, which is a quarter of
the cost of a decision; a scene belongs to one thread.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, cast, overload

T = TypeVar("T")
Owner = TypeVar("Owner")


class once(Generic[T]):  # noqa: N801 (used like a keyword)
    """Decorates a method without arguments; the value replaces it on the object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "once[T]": ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: object | None, kind: type) -> "once[T] | T":
        if owner is None:
            return self
        value = self._compute(owner)
        owner.__dict__[self._name] = value
        return value


def kept(compute: Callable[[Owner], T]) -> Callable[[Owner], T]:
    """Decorates a function of one object, whose answer is kept with the object."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def answer(owner: Owner) -> T:
        known = owner.__dict__
        if name not in known:
            known[name] = compute(owner)
        return cast("T", known[name])

    return answer
