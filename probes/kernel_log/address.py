"""PCI addresses as logs print them, in one spelling.

NVML prints eight digits of domain, old drivers none, `lspci` may print capitals: a device must
have one name, or its faults are counted apart.
"""

import re

PATTERN = r"(?:[0-9a-fA-F]{1,8}:)?[0-9a-fA-F]{2,4}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?(?![0-9a-fA-F])"
"""`domain:bus:device[.function]`, the domain optional; matches no more than one address."""

FULL = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?(?![0-9a-fA-F])"
"""With its domain: for lines where hexadecimal words abound."""

DEVICE = re.compile(FULL)


def normal(text: str) -> str:
    """Lower case, four digits of domain; the function digit stays as the line has it."""
    parts = text.lower().split(":")
    domain, bus = (parts[0], parts[1]) if len(parts) == 3 else ("0", parts[0])
    return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{parts[-1]}"


def without_function(pci: str) -> str:
    """`0000:52:00.0` and `0000:52:00` are one device."""
    return pci.partition(".")[0]
