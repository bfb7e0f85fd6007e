"""The parts of a node that can be sick: `gpu:3`, `gpu:3/mig:1`, `nvlink:3/7`, `nic:rdmap16s27`,
`pci:0000:52:00`, `host`.

A part is text with a checked form, so that it can stand in conditions, YAML, metrics and
histories unchanged. A PCI address is the name of last resort, where no index is known.
"""

import re
from typing import NewType

Part = NewType("Part", str)

HOST = Part("host")

_FORM = re.compile(
    r"host"
    r"|gpu:\d{1,3}(/mig:\d{1,3})?"
    r"|nvlink:\d{1,3}/\d{1,3}"
    r"|nvswitch:\d{1,3}"
    r"|nic:[A-Za-z0-9_.-]{1,32}"
    r"|pci:[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(\.[0-7])?(/mig:\d{1,3})?"
)


def parse_part(text: str) -> Part:
    """Return the part, or raise ValueError that says which forms there are."""
    if not _FORM.fullmatch(text):
        raise ValueError(f"not a part of a node: {text!r} (like gpu:3, nic:NAME, pci:0000:52:00)")
    return Part(text)
