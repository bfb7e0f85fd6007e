"""PCI Express: what advanced error reporting (AER) says about a device or its port.

A GPU's port cannot be told from another's by its line, so a fatal error drains unless the line
names a driver that is neither GPU, network adapter nor port.
"""

import re

from probes.kernel_log import address
from probes.kernel_log.reading import Reading

_DEVICE = re.compile(rf"(?:([\w-]+) )?({address.FULL}): (?:AER: |PCIe Bus Error: )")
_CORRECTED = re.compile(
    r"AER: (?:Multiple )?Correct(?:ed|able) error|severity=Correct(?:ed|able)", re.IGNORECASE
)
_UNCORRECTED = re.compile(
    r"(?:AER: (?:Multiple )?|severity=)Uncorrect(?:ed|able) \((Non-?Fatal|Fatal)\)", re.IGNORECASE
)
_LOST = re.compile(r"AER: (?:device recovery failed|can't recover)")
_RECOVERED = re.compile(r"AER: device recovery successful")
_SOURCE = re.compile(rf"received(?: from|:) ({address.FULL})")

ADAPTERS = ("nvidia", "mlx5_core", "efa")
"""Drivers whose device is itself a GPU or a network adapter of the fabric."""
_PORTS = ("pcieport", "pci", "shpchp", "vfio-pci")


def read(message: str) -> Reading | None:
    """The PCIe error in a message, or None."""
    if "AER: " not in message and "PCIe Bus Error: " not in message:
        return None
    device = _DEVICE.search(message)
    driver = (device[1] if device else None) or ""
    pci = address.normal(device[2]) if device else None
    if _CORRECTED.search(message):
        return Reading("aer", "corrected", "pcie", "warning", "none", "none", pci=pci)
    if word := _UNCORRECTED.search(message):
        if word[1].lower() == "fatal":
            return _fatal("uncorrected_fatal", driver, pci)
        return _nonfatal(driver, pci, message)
    if _LOST.search(message):
        return _fatal("cannot_recover", driver, pci)
    if _RECOVERED.search(message):
        return Reading("aer", "recovered", "pcie", "info", "none", "none", pci=pci)
    return None


def _fatal(code: str, driver: str, pci: str | None) -> Reading:
    ours = not driver or driver in ADAPTERS or driver in _PORTS
    return Reading(
        "aer", code, "pcie", "fatal", "drain" if ours else "hold", "pcie-degraded", pci=pci
    )


def _nonfatal(driver: str, pci: str | None, message: str) -> Reading:
    """Whether it drains is a matter of memory: who has the error, and whether it repeats."""
    source = _SOURCE.search(message)
    about = pci if driver in ADAPTERS else (address.normal(source[1]) if source else None)
    return Reading(
        "aer", "uncorrected_nonfatal", "pcie", "degraded", "hold", "pcie-degraded",
        pci=pci, about=about,
    )  # fmt: skip
