"""Whose work was hit: pods by their UIDs, as findings and faults carry them.

A UID says nothing to whoever may not list pods. Static pods have the hash of their manifest in its
place. What a pod is called, and whose it is, is looked up only where somebody needs to know.
"""

import re
from collections.abc import Iterable

PODS_LIMIT = 4
"""Pods that a fault names; of more the last ones stay."""

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}")


def is_pod_uid(text: str) -> bool:
    """Whether this is written as the UID of a pod is: a UUID, or the hash of a static pod."""
    return _UID.fullmatch(text) is not None


def hit(known: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    """The pods known to be hit and more of them, each once, in the order of their first hit."""
    return tuple(dict.fromkeys((*known, *more)))[-PODS_LIMIT:]


def parse_pods(text: str) -> tuple[str, ...]:
    """UIDs with commas between them; what is written otherwise names no pod and is left out."""
    return hit((), filter(is_pod_uid, text.split(",")))
