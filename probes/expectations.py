"""How many GPUs and adapters a node should have: what it was launched with, bounded by its type.

Said by configuration (`GPUMEND_EXPECT_GPUS`, `GPUMEND_EXPECT_ADAPTERS`, in the DaemonSet of a
pool); else the most that this machine was ever seen to have, which only grows, so that a short
first boot is never what is expected. The type alone is a maximum, not a promise: fewer than it may
be on purpose, and is unknown. A type that nobody knows is unknown, not zero.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from probes import catalog
from probes.machine import Machine
from probes.records import write_whole

GPUS, ADAPTERS = "GPUMEND_EXPECT_GPUS", "GPUMEND_EXPECT_ADAPTERS"
TYPE = "GPUMEND_INSTANCE_TYPE"
MOST = 1_024
"""Of either; a larger number is a slip of the pen."""
_SEEN = "seen"


@dataclass(frozen=True, slots=True)
class Expected:
    """`least` is what must be there (None: nobody said), `most` the type's maximum (None: unknown).

    `source` says in words where `least` comes from.
    """

    least: int | None
    most: int | None
    source: str = ""


def expect(machine: Machine, kind: str, environment: Mapping[str, str] = os.environ) -> Expected:
    """What is expected of `GPUS` or `ADAPTERS` on this machine."""
    known = catalog.instance_types().get(instance_type(machine, environment))
    most = None if known is None else (known.gpus if kind == GPUS else known.adapters)
    said = _number(environment.get(kind, ""))
    if said is not None:
        return Expected(said if most is None else min(said, most), most, "configured")
    seen = best_seen(machine, kind)
    if seen:
        return Expected(seen if most is None else min(seen, most), most, "seen before")
    return Expected(None, most)


def instance_type(machine: Machine, environment: Mapping[str, str] = os.environ) -> str:
    """The machine's type as configured, or as its firmware says; empty where neither does."""
    given = environment.get(TYPE, "").strip()
    if given:
        return given
    try:
        product = machine.root / "sys/class/dmi/id/product_name"
        return product.read_text("ascii", "replace").strip()[:64]
    except OSError:
        return ""


def best_seen(machine: Machine, kind: str) -> int:
    """The most that was ever seen here; 0 where nothing was, or where it cannot be read."""
    try:
        return _number(own_file(machine, kind).read_text("ascii")) or 0
    except (OSError, ValueError):
        return 0


def remember(machine: Machine, kind: str, count: int) -> None:
    """Keep a count that is larger than any before; raises OSError where that cannot be written."""
    if not best_seen(machine, kind) < count <= MOST:
        return
    place = own_file(machine, kind)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, str(count))


def own_file(machine: Machine, kind: str) -> Path:
    """Where something about this machine is kept: under its own name, since a state folder that
    came with an image tells nothing of it."""
    try:
        uuid = (machine.root / "sys/class/dmi/id/product_uuid").read_bytes().strip()
    except OSError:
        uuid = b""
    return machine.state / _SEEN / f"{kind}-{hashlib.sha256(uuid).hexdigest()[:8]}"


def _number(text: str) -> int | None:
    text = text.strip()
    plain = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if plain and int(text) <= MOST else None
