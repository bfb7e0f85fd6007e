"""Which GPU is which to DCGM: its own numbers, and the PCI addresses behind them. Parsing only."""

import re
from collections.abc import Mapping

from probes.dcgm.table import rows
from probes.parts import short_address

_COUNT = re.compile(r"^\s*(\d{1,3}) GPUs? found", re.MULTILINE)
_ADDRESS = re.compile(r"PCI Bus ID:\s*([0-9a-fA-F:.]+)")


def read(text: str) -> Mapping[str, str] | None:
    """Short PCI addresses by DCGM's number, of those that say one.

    None where this is no answer of an engine.
    """
    if not _COUNT.search(text):
        return None
    found: dict[str, str] = {}
    number = ""
    for row in rows(text):
        if row.left:
            number = row.left if row.left.isascii() and row.left.isdigit() else ""
        address = _ADDRESS.search(row.right)
        if number and address:
            try:
                found[number] = short_address(address[1])
            except ValueError:
                continue
    return found
