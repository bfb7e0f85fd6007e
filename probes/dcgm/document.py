"""The JSON document somewhere in what a tool printed: banners and warnings may stand around it."""

import json
from typing import Any

_BRACES = 32
"""Places where a document may begin that are tried."""


def first_document(text: str) -> dict[str, Any] | None:
    """The first whole JSON object; None where there is none, or only a part of one."""
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(_BRACES):
        if at < 0:
            return None
        try:
            document, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        return document if isinstance(document, dict) else None
    return None


def mapping(said: Any) -> dict[str, Any]:
    """`said` if it is an object, else an empty one."""
    return said if isinstance(said, dict) else {}


def items(said: Any) -> list[Any]:
    """`said` if it is a list, else an empty one; some versions leave holes in theirs (null)."""
    return [each for each in said if each is not None] if isinstance(said, list) else []
