"""What a node offers to jobs that a repair may lose: GPUs, slices of them, adapters. Pure."""

from collections.abc import Mapping, Sequence

from fleet.node import Manifest

_PREFIXES = ("nvidia.com/gpu", "nvidia.com/mig-", "vpc.amazonaws.com/efa", "rdma/")


def offered(manifest: Manifest) -> tuple[str, ...]:
    """Capacity, not what is allocatable just now: a lost GPU is still counted in it."""
    capacity: Mapping[str, object] = (manifest.get("status") or {}).get("capacity") or {}
    return tuple(f"{name}={capacity[name]}" for name in sorted(capacity) if _counts(name))


def missing(before: Sequence[str], allocatable: Mapping[str, str]) -> tuple[str, ...]:
    """What is offered less than before, in words; more than before is no fault."""
    short = []
    for entry in before:
        name, _, amount = entry.partition("=")
        if _number(allocatable.get(name, "0")) < _number(amount):
            short.append(f"{name}: {allocatable.get(name, '0')} of {amount}")
    return tuple(short)


def withheld(manifest: Manifest) -> tuple[str, ...]:
    """What the node has and does not let jobs have: its device plugin calls it unhealthy."""
    status = manifest.get("status") or {}
    return missing(offered(manifest), status.get("allocatable") or {})


def _counts(resource: str) -> bool:
    return resource.startswith(_PREFIXES)


def _number(amount: object) -> int:
    """Extended resources are whole numbers; what is none counts as nothing."""
    text = str(amount)
    return int(text) if text.isdecimal() else 0
