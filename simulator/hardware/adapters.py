"""The network adapters of a machine, as sysfs and the PCI bus show them: 32 EFA links.

An adapter that is gone leaves no trace but its absence: the others say ACTIVE, as EFA always does.
"""

from pathlib import Path

COUNT = 32
GONE = COUNT - 1
"""The one that goes."""
_CLASS, _BUS = "sys/class/infiniband", "sys/bus/pci/devices"
_PORT = {
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "100 Gb/sec (4X EDR)",
    "link_layer": "Unspecified",
}


def build_adapters(root: Path) -> None:
    """All of them."""
    driver = root / "sys/bus/pci/drivers/efa"
    driver.mkdir(parents=True)
    for number in range(COUNT):
        _build(root / _BUS / _address(number), root / _CLASS / _name(number), driver)


def show_adapters(root: Path, aside: Path, gone: bool) -> None:
    """Take the last adapter off the bus and out of its driver, or put it back; `aside` keeps it."""
    for place in (root / _CLASS / _name(GONE), root / _BUS / _address(GONE)):
        kept = aside / place.name
        if gone and place.exists():
            aside.mkdir(exist_ok=True)
            place.rename(kept)
        elif not gone and kept.exists():
            kept.rename(place)


def _build(device: Path, adapter: Path, driver: Path) -> None:
    port, counters = adapter / "ports/1", adapter / "hw_counters"
    for folder in (device, port, counters):
        folder.mkdir(parents=True)
    for name, text in (("vendor", "0x1d0f"), ("device", "0xefa1"), ("class", "0x020000")):
        (device / name).write_text(f"{text}\n")
    (device / "driver").symlink_to(driver)
    (adapter / "device").symlink_to(device)
    for name, text in _PORT.items():
        (port / name).write_text(f"{text}\n")
    for name in ("no_completion_cmds", "cmds_err"):
        (counters / name).write_text("0\n")


def _address(number: int) -> str:
    return f"0000:{0x10 + number:02x}:1b.0"


def _name(number: int) -> str:
    return f"rdmap{0x10 + number}s27"
