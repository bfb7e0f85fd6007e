"""Network adapters: mlx5 (ConnectX), EFA, and what the network stack says about an interface.

A row is a pattern and what it means; the first that matches wins. An ENA adapter carries the
node's own traffic, not the job's: its words count only where EFA shares its function.
"""

import re
from functools import partial

from probes.kernel_log import address
from probes.kernel_log.meaning import first, row
from probes.kernel_log.reading import CONTEXT, Reading

_MLX5 = re.compile(rf"mlx5_core ({address.FULL})")
_EFA_DEVICE = re.compile(r"\b((?:rdmap|efa_)\w+): ")
_EFA_FUNCTION = re.compile(rf"\befa(?:: probe of)? ({address.FULL})")
_ANY_DEVICE = re.compile(rf"({address.FULL})")


_mlx5_row = partial(row, "mlx5")
_efa_row = partial(row, "efa")

# fmt: off
MLX5 = (
    _mlx5_row(r"health compromised|[Ff]atal error \d+ detected",
         "health_compromised", "nic", "fatal", "drain", "nic-degraded"),
    _mlx5_row(r"insufficient power on the PCIe slot",
         "slot_power", "nic", "warning", "none", "none"),
    _mlx5_row(r"Port module event\[error\]: module \d+, .*High Temperature",
         "module_high_temp", "thermal", "degraded", "hold", "thermal"),
    _mlx5_row(r"Port module event\[error\]: module \d+, ",
         "module_error", "nic", "degraded", "hold", "nic-degraded"),
    _mlx5_row(r"Port module event: module \d+, Cable plugged",
         "cable_plugged", "nic", "info", "none", "none"),
    _mlx5_row(r"Port module event: module \d+, Cable unplugged",
         "cable_unplugged", "nic", "warning", "none", "none"),
    _mlx5_row(r"available PCIe bandwidth, limited by",
         "pcie_bandwidth_limited", "pcie", "degraded", "hold", "pcie-degraded"),
    _mlx5_row(r"probe with driver mlx5_core failed with error"
              r"|mlx5_core: probe of \S+ failed with error",
         "probe_failed", "nic", "fatal", "drain", "nic-degraded"),
)
EFA = (
    _efa_row(r"Wait for completion \(\w+\) timeout"
             r"|The device didn't send any completion for admin cmd",
         "admin_timeout", "nic", "fatal", "drain", "nic-degraded"),
    _efa_row(r"Admin queue is closed",
         "admin_queue_closed", "nic", "fatal", "drain", "nic-degraded"),
    _efa_row(r"Reset indication didn't turn o",
         "reset_stuck", "nic", "fatal", "drain", "nic-degraded"),
    _efa_row(r"Device isn't ready|probe with driver efa failed with error"
         r"|\befa: probe of \S+ failed with error",
         "init_failed", "nic", "fatal", "drain", "nic-degraded"),
)
# fmt: on
_TX_TIMEOUT = re.compile(r"NETDEV WATCHDOG: .*transmit queue \d+ timed out")
_CARRIER = re.compile(r"\bsystemd-networkd\[\d+\]: ([\w.-]+): (lost|gained) carrier", re.IGNORECASE)
_ENA = re.compile(rf"\(ena\)|\bena {address.FULL}")

_VIRTUAL = re.compile(
    r"(?:lo|veth|cali|cilium|lxc|cni|docker|br-|virbr|flannel|vxlan|tunl|dummy|kube|nodelocal"
    r"|tap|tun|ifb|wg|eni[0-9a-f]{8}|azv|gre|ovs|ovn|antrea|podman|vnet|vmnet|macvtap)"
)
"""Interfaces of containers and overlays: they come and go with pods."""


def read(message: str) -> Reading | None:
    """What a message says about a network adapter, or None."""
    if _TX_TIMEOUT.search(message):
        return _tx_timeout(message)
    if "mlx5_" in message:
        return _mlx5(message)
    if "efa" in message or "infiniband" in message:
        return _efa(message)
    if "arrier" in message and (found := _CARRIER.search(message)):
        return _carrier(found[1], found[2].lower())
    return None


def _tx_timeout(message: str) -> Reading:
    found = _ANY_DEVICE.search(message)
    fault = "host-degraded" if _ENA.search(message) else "nic-degraded"
    pci = address.normal(found[1]) if found else None
    return Reading("net", "tx_timeout", "nic", "degraded", "hold", fault, pci=pci)


def _mlx5(message: str) -> Reading | None:
    meaning = first(MLX5, message)
    if meaning is None:
        return None
    found = _MLX5.search(message) or _ANY_DEVICE.search(message)
    pci = address.normal(found[1]) if found else None
    return meaning.of(pci=pci)


def _efa(message: str) -> Reading | None:
    device, function = _EFA_DEVICE.search(message), _EFA_FUNCTION.search(message)
    pci = address.normal(function[1]) if function else None
    meaning = first(EFA, message)
    if meaning is None:
        named = Reading(CONTEXT, "efa_named", "nic", "info", "none", "none", pci=pci)
        return named if pci else None
    if not (device or function):
        return None
    return meaning.of(pci=pci, dev=device[1] if device else None)


def _carrier(interface: str, word: str) -> Reading | None:
    if _VIRTUAL.match(interface):
        return None
    if word == "gained":
        return Reading("net", "carrier_gained", "nic", "info", "none", "none", dev=interface)
    return Reading("net", "carrier_lost", "nic", "degraded", "hold", "nic-degraded", dev=interface)
