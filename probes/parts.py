"""Which part of the node a PCI address is, and who it is.

`gpu:3` is `/dev/nvidia3`: the device minor, which keeps its number through a boot even when another
GPU is lost. Where no index is known, the PCI address is the name of last resort. The keyed identity
of a GPU is an HMAC of its UUID; the UUID itself goes nowhere.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleet.part import HOST, Part

_ADDRESS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?")
_UUID = re.compile(r"GPU-[0-9a-f-]{8,}")
_INDEX_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as the driver lists it: its index, and its keyed identity (empty where unknown)."""

    index: int
    id: str = ""


@dataclass(frozen=True, slots=True)
class Naming:
    """GPUs by address (`0000:52:00`), as the driver lists them or listed them in this boot."""

    gpus: Mapping[str, Gpu] = field(default_factory=dict)
    root: Path | None = None

    def gpu(self, pci: str, mig: int | None = None) -> Part:
        """The part of a GPU's address, or of one of its MIG instances."""
        address = short_address(pci)
        known = self.gpus.get(address)
        name = f"pci:{address}" if known is None else f"gpu:{known.index}"
        return Part(name if mig is None else f"{name}/mig:{mig}")

    def device(self, pci: str) -> Part:
        """The part of any device's address: GPU, network adapter, else the address itself."""
        address = short_address(pci)
        if address in self.gpus:
            return self.gpu(pci)
        adapter = self._adapter(pci.lower())
        return Part(f"nic:{adapter}" if adapter else f"pci:{address}")

    def link(self, pci: str, link: int) -> Part:
        """An NVLink of a GPU; the GPU itself where its index is not known."""
        known = self.gpus.get(short_address(pci))
        if known is None or not 0 <= link < _INDEX_LIMIT:
            return self.gpu(pci)
        return Part(f"nvlink:{known.index}/{link}")

    def id(self, part: Part) -> str:
        """The keyed identity of the GPU that a part belongs to, empty where there is none."""
        owner = owner_of(part)
        return next((gpu.id for gpu in self.gpus.values() if owner == f"gpu:{gpu.index}"), "")

    def address(self, part: Part) -> str | None:
        """The PCI address of the GPU that a part belongs to, None where it is not known."""
        owner = owner_of(part)
        if owner.startswith("pci:"):
            return owner.removeprefix("pci:")
        return next((pci for pci, gpu in self.gpus.items() if owner == f"gpu:{gpu.index}"), None)

    def _adapter(self, pci: str) -> str:
        if self.root is None:
            return ""
        try:
            names = sorted(
                each.name
                for each in (self.root / f"sys/bus/pci/devices/{pci}/infiniband").iterdir()
            )
        except OSError:
            return ""
        return names[0] if names and re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", names[0]) else ""


def short_address(pci: str) -> str:
    """`0000:52:00` for `00000000:52:00.0`, `0000:52:00.0` and itself; other functions are kept.

    Raises ValueError for what is not a PCI address.
    """
    found = _ADDRESS.fullmatch(pci)
    if not found:
        raise ValueError(f"not a PCI address: {pci[:40]!r}")
    domain, bus, device, function = found.groups()
    tail = f".{function}" if function not in (None, "0") else ""
    return f"{int(domain, 16):04x}:{bus}:{device}{tail}".lower()


def owner_of(part: Part) -> Part:
    """What is reset together with a part: `gpu:3` for `gpu:3/mig:1` and `nvlink:3/7`."""
    kind, _, rest = part.partition(":")
    if kind == "nvlink":
        return Part(f"gpu:{rest.partition('/')[0]}")
    return Part(part.partition("/")[0])


def covers(scope: Part, part: Part) -> bool:
    """Whether what was done to `scope` was done to `part`; the host is everything."""
    return scope == HOST or owner_of(scope) == owner_of(part)


GPU_FILES = "proc/driver/nvidia/gpus/*/information"
"""One a GPU that the driver has; reading them may hang with the driver (`probes.files`)."""


def gpus_of(texts: Iterable[bytes], key: bytes = b"") -> dict[str, Gpu]:
    """The GPUs in the driver's files, by address; a file that says no index names nothing."""
    found = {}
    for text in texts:
        try:
            address, gpu = _gpu(text.decode("utf-8", "replace"), key)
        except (ValueError, KeyError):
            continue
        found[address] = gpu
    return found


def _gpu(text: str, key: bytes) -> tuple[str, Gpu]:
    fields = {
        name.strip(): value.strip()
        for name, separator, value in (line.partition(":") for line in text.splitlines())
        if separator
    }
    index = int(fields["Device Minor"])
    if not 0 <= index < _INDEX_LIMIT:
        raise ValueError(f"no index: {index}")
    return short_address(fields["Bus Location"]), Gpu(index, keyed_id(key, fields.get("GPU UUID")))


def keyed_id(key: bytes, uuid: str | None) -> str:
    """First 8 of HMAC-SHA256(key, UUID); empty without a key or a UUID that the driver knows."""
    if not key or not uuid or not _UUID.fullmatch(uuid):
        return ""
    return hmac.new(key, uuid.encode(), hashlib.sha256).hexdigest()[:8]
