"""Which GPU is in which slot: as this machine was first seen, and as it is. Keyed ids, no UUIDs.

Kept under the machine's own name, like its counts: a state folder that came with an image tells
nothing of it. A GPU that is gone is no change of this kind: its loss is a fault of its own.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from probes.expectations import own_file
from probes.machine import Machine
from probes.parts import Gpu
from probes.records import write_whole

Topology = Mapping[str, str]
"""The keyed id of the GPU at each PCI address; empty where it has none."""
_NAME = "gpus"
_LIMIT = 64


def of(gpus: Mapping[str, Gpu]) -> Topology:
    """The topology in what the driver lists."""
    return {pci: gpu.id for pci, gpu in sorted(gpus.items())[:_LIMIT]}


def changes(before: Topology, now: Topology) -> tuple[str, ...]:
    """What is not where it was, in words; nothing where nothing was remembered."""
    if not before:
        return ()
    new = [f"a GPU at {pci} that was not there" for pci in now if pci not in before]
    other = [
        f"another GPU at {pci}"
        for pci, id_ in now.items()
        if id_ and before.get(pci) and before[pci] != id_
    ]
    return (*new, *other)


def place(machine: Machine) -> Path:
    """Where it is kept."""
    return own_file(machine, _NAME)


def recall(machine: Machine) -> Topology:
    """As first seen, empty where it never was; raises OSError, or ValueError for a broken file."""
    path = place(machine)
    try:
        said = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(said, dict) or not all(isinstance(each, str) for each in said.values()):
        raise ValueError(f"{path}: no addresses and ids of GPUs: remove it")
    return {str(pci): id_ for pci, id_ in said.items()}


def remember(machine: Machine, now: Topology) -> None:
    """Keep the first that is seen; raises OSError where that cannot be written."""
    path = place(machine)
    if now and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(dict(now)))
