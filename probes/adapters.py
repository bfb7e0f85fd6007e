"""The network adapters for collectives, as sysfs shows them: EFA, InfiniBand, RoCE. Parsing only.

Not counted: virtual functions, adapters whose driver is neither of these, and, where others speak
InfiniBand, those that speak Ethernet alone: they are for management. What the numbers mean is
judged by `probes/checks/adapters.py`.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from probes.counters import parse_count

CLASS = "sys/class/infiniband"
FILES = (
    f"{CLASS}/*/ports/*/state",
    f"{CLASS}/*/ports/*/phys_state",
    f"{CLASS}/*/ports/*/rate",
    f"{CLASS}/*/ports/*/link_layer",
    *(
        f"{CLASS}/*/ports/*/counters/{name}"
        for name in (
            *("link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors"),
            *("local_link_integrity_errors", "excessive_buffer_overrun_errors"),
        )
    ),
    *(f"{CLASS}/*/hw_counters/{name}" for name in ("no_completion_cmds", "cmds_err")),
    *(f"{CLASS}/*/device/{name}_link_width" for name in ("current", "max")),
    *(
        f"{CLASS}/*/device/net/*/{name}"
        for name in ("carrier_down_count", "carrier_changes", "phys_port_name")
    ),
)
"""Reading them asks the adapter's firmware, which may hang: only ever in a child."""
EFA, MELLANOX = "efa", "mlx5_core"
LINK_DOWNED = "link_downed"
INFINIBAND, ETHERNET = "InfiniBand", "Ethernet"
"""What a port says of its link layer."""
_EFA_VENDOR, _MELLANOX_VENDOR = "0x1d0f", "0x15b3"
_INFINIBAND_CLASS = "0x0207"
_VIRTUAL_PORT = re.compile(r"(?:c\d+)?pf\d+(?:vf|sf)\d+")
_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec(?: \((\d+)X)?")

Texts = Mapping[str, str]
"""The files of one adapter by their place below it."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port. `state` and `physical` are the numbers in front of the words; -1 where unreadable.

    `rate` is in Gb/s and `width` in lanes, 0 where unreadable.
    """

    number: str
    state: int = -1
    physical: int = -1
    rate: float = 0.0
    width: int = 0
    layer: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter by its name in sysfs; `pci` its full address, empty where sysfs does not say.

    `lanes` of the bus that it has, of the `most` that it could have; 0 where nobody says.
    `carrier_lost` is how often its Ethernet interface lost its carrier, None where nobody counts.
    """

    name: str
    driver: str
    pci: str = ""
    ports: tuple[Port, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    lanes: int = 0
    most: int = 0
    carrier_lost: int | None = None

    @property
    def went_down(self) -> Mapping[str, int]:
        """How often each link went down, by its name: by the carrier, where it is of Ethernet."""
        if self.ethernet and self.carrier_lost is not None:
            return {"carrier": self.carrier_lost}
        ports = {f"port {each.number}": each.counters.get(LINK_DOWNED) for each in self.ports}
        return {name: count for name, count in ports.items() if count is not None}

    @property
    def ethernet(self) -> bool:
        """Whether it speaks Ethernet alone."""
        return bool(self.ports) and all(each.layer == ETHERNET for each in self.ports)


def names_in(root: Path) -> tuple[str, ...]:
    """The adapters that a driver has taken; raises OSError where that cannot be listed."""
    folder = root / CLASS
    return tuple(sorted(each.name for each in folder.iterdir())) if folder.exists() else ()


def read_adapters(root: Path, contents: Mapping[Path, bytes]) -> tuple[Adapter, ...]:
    """The adapters with what was read of their files (`FILES`); raises OSError like `names_in`."""
    files = _by_adapter(root / CLASS, contents)
    named = (_adapter(root, name, files.get(name, {})) for name in names_in(root))
    found = tuple(each for each in named if each is not None)
    infiniband = any(port.layer == INFINIBAND for each in found for port in each.ports)
    return tuple(each for each in found if not (infiniband and each.ethernet))


def functions_on_bus(root: Path) -> Mapping[str, str]:
    """PCI functions that should be such an adapter, by address, with the driver that they want.

    Raises OSError where the bus cannot be listed.
    """
    found = {}
    for device in (root / "sys/bus/pci/devices").iterdir():
        driver = _wants(device)
        if driver and not (device / "physfn").exists():
            found[device.name.lower()] = driver
    return found


def parse_rate(text: str) -> tuple[float, int]:
    """`400 Gb/sec (4X NDR)` as (400.0, 4); zeros for what is none."""
    matched = _RATE.match(text.strip())
    return (float(matched[1]), int(matched[2] or 0)) if matched else (0.0, 0)


def parse_state(text: str) -> int:
    """`4: ACTIVE` as 4; -1 for what is none."""
    head = text.partition(":")[0].strip()
    return int(head) if head.isascii() and head.isdigit() and len(head) < 4 else -1


def parse_lanes(text: str) -> int:
    """`16` as 16; 0 for what is none: virtual functions say 0, 63 or 255."""
    count = parse_count(text)
    return count if count in (1, 2, 4, 8, 12, 16, 32) else 0


def _by_adapter(base: Path, contents: Mapping[Path, bytes]) -> Mapping[str, Texts]:
    """The files of each adapter, by their place below it: one pass over all of them."""
    found: dict[str, dict[str, str]] = {}
    head = f"{base}/"
    for path, content in contents.items():
        name, _, rest = str(path).removeprefix(head).partition("/")
        if rest and str(path).startswith(head):
            found.setdefault(name, {})[rest] = content.decode("ascii", "replace")
    return found


def _adapter(root: Path, name: str, mine: Texts) -> Adapter | None:
    device = root / CLASS / name / "device"
    driver = _link_name(device / "driver")
    if driver not in (EFA, MELLANOX) or (device / "physfn").exists():
        return None
    numbers = sorted({place.split("/")[1] for place in mine if place.startswith("ports/")})
    return Adapter(
        name=name,
        driver=driver,
        pci=_link_name(device),
        ports=tuple(_port(number, mine) for number in numbers),
        counters=_counters("hw_counters/", mine),
        lanes=parse_lanes(mine.get("device/current_link_width", "")),
        most=parse_lanes(mine.get("device/max_link_width", "")),
        carrier_lost=_carrier_lost(mine),
    )


def _carrier_lost(files: Texts) -> int | None:
    """Of its own interface, and of none that stands for a virtual function's."""
    found = {each.rpartition("/")[0] for each in files if each.startswith("device/net/")}
    counts = [_carrier_lost_by(each, files) for each in found if not _is_virtual(each, files)]
    return max((each for each in counts if each is not None), default=None)


def _is_virtual(interface: str, files: Texts) -> bool:
    name = files.get(f"{interface}/phys_port_name", "").strip()
    return _VIRTUAL_PORT.fullmatch(name) is not None


def _carrier_lost_by(interface: str, files: Texts) -> int | None:
    """Older kernels count changes only: it begins without a carrier, so every second is a loss."""
    lost = parse_count(files.get(f"{interface}/carrier_down_count", ""))
    changes = parse_count(files.get(f"{interface}/carrier_changes", ""))
    return changes // 2 if lost is None and changes is not None else lost


def _port(number: str, files: Texts) -> Port:
    base = f"ports/{number}/"
    rate, width = parse_rate(files.get(base + "rate", ""))
    return Port(
        number=number,
        state=parse_state(files.get(base + "state", "")),
        physical=parse_state(files.get(base + "phys_state", "")),
        rate=rate,
        width=width,
        layer=files.get(base + "link_layer", "").strip(),
        counters=_counters(base + "counters/", files),
    )


def _counters(folder: str, files: Texts) -> Mapping[str, int]:
    mine = {place.removeprefix(folder): place for place in files if place.startswith(folder)}
    found = {name: parse_count(files[place]) for name, place in mine.items() if "/" not in name}
    return {name: count for name, count in found.items() if count is not None}


def _wants(device: Path) -> str:
    vendor, kind, number = (_text(device / each) for each in ("vendor", "class", "device"))
    if vendor == _EFA_VENDOR and number.startswith("0xefa"):
        return EFA
    if vendor == _MELLANOX_VENDOR and kind.startswith(_INFINIBAND_CLASS):
        return MELLANOX
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip().lower()
    except OSError:
        return ""


def _link_name(path: Path) -> str:
    """What a link of sysfs leads to; following it to its end would cost more than all we read."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ""


def usual_lanes(adapters: Iterable[Adapter]) -> Mapping[str, int]:
    """By driver, the most lanes of the bus that any adapter of this node has."""
    most: dict[str, int] = {}
    for adapter in adapters:
        most[adapter.driver] = max(most.get(adapter.driver, 0), adapter.lanes)
    return most


def usual_rate(adapters: Iterable[Adapter]) -> Mapping[str, float]:
    """By driver, the fastest rate that any port of this node runs at, in Gb/s."""
    fastest: dict[str, float] = {}
    for adapter in adapters:
        for port in adapter.ports:
            fastest[adapter.driver] = max(fastest.get(adapter.driver, 0.0), port.rate)
    return fastest
