"""A ledger as one small piece of text, for a run that goes on as the next.

Ten thousand asks are four megabytes of JSON, and a payload may have two: packed they are some
hundred kilobytes. What is in it is shown by the run's card and by the query `ledger`.
"""

import base64
import zlib
from dataclasses import dataclass

from pydantic import TypeAdapter

from policies.ledger import Ledger

_LEDGER = TypeAdapter(Ledger)


@dataclass(frozen=True, slots=True)
class Archive:
    """What a run of the budget starts with; counts are for people. Without text: a new ledger."""

    leases: int = 0
    waiting: int = 0
    frozen: bool = False
    text: str = ""


def pack(ledger: Ledger) -> Archive:
    """The ledger for the next run."""
    packed = base64.b64encode(zlib.compress(_LEDGER.dump_json(ledger), 1)).decode()
    return Archive(len(ledger.leases), len(ledger.waiting), ledger.freeze is not None, packed)


def unpack(archive: Archive) -> Ledger:
    """The ledger of the run before; raises ValueError for a text that is none."""
    if not archive.text:
        return Ledger()
    try:
        return _LEDGER.validate_json(zlib.decompress(base64.b64decode(archive.text)))
    except zlib.error as problem:
        raise ValueError(f"this is no packed ledger: {problem}") from problem
