"""What all parts of the policy document share: they never change, and they refuse what they do
not know. A part says the meaning, unit, default and reason of each field on the field itself.
"""

import difflib
from collections.abc import Iterable
from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError


class Terms(BaseModel):
    """A frozen part of the policy document."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", serialize_by_alias=True, allow_inf_nan=False
    )


def hyphened(name: str) -> str:
    """The spelling of a field that is a step or a scope: `reset_gpu` is written `reset-gpu`."""
    return name.replace("_", "-")


def refusal(what: str, remedy: str) -> PydanticCustomError:
    """A mistake in a value: what is wrong, and what to write instead."""
    return PydanticCustomError("policy", "{what}", {"what": what, "remedy": remedy})


def no_such(kind: str, value: object, known: Iterable[str]) -> PydanticCustomError:
    """A word that is not one of the known ones, with the nearest of them or all as remedy."""
    return refusal(f"{shown(value)} is not {kind}", nearest(value, known))


def nearest(value: object, known: Iterable[str]) -> str:
    """The remedy for a word that is not known."""
    words = tuple(known)
    close = difflib.get_close_matches(str(value), words, n=1)
    if close:
        return f"did you mean {close[0]}?"
    if len(words) == 1:
        return f"write {words[0]}"
    return f"write one of {', '.join(words)}" if words else "take it out"


def shown(value: object) -> str:
    """A value in a message: as written if it is short, else cut, else by its kind."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
