"""What the agent would publish now, for a person on the node. Remembers nothing, tells nobody."""

import stat
from datetime import datetime

from fleet.node import Condition
from probes.agent.core import Core
from probes.agent.memory import load
from probes.agent.senses import Sensed, Senses
from probes.kmsg import open_source
from probes.machine import Machine
from probes.records import read_records

_BATCH = 512


def look_once(machine: Machine, key: bytes, now: datetime, accept: bool) -> list[Condition]:
    """The nine conditions; raises OSError or ValueError where the boot id cannot be read."""
    core = Core(machine, load(machine.state, machine.boot_id()), accept)
    sensed = _look(core, key, examine=False)
    core.named(sensed.gpus if sensed else core.memory.gpus)
    try:
        _read(core, now)
    except OSError:
        core.trouble["reader:unreadable"] = now
    core.repaired(read_records(machine.state, core.memory.cursor.boot_id))
    if core.needs_checks:
        looked = _look(core, key, examine=True)
        core.found(looked.findings if looked else (), looked is not None, now)
    return list(core.conditions().values())


def _look(core: Core, key: bytes, examine: bool) -> Sensed | None:
    """None while a reset needs the GPU, and for a person who may not take the host lock."""
    try:
        return Senses(core.machine, key).look(core.memory.gpus, examine)
    except OSError:
        return None


def _read(core: Core, now: datetime) -> None:
    """A FIFO is the running agent's: what we took from it, it would never see."""
    path = core.machine.kmsg
    if stat.S_ISFIFO(path.stat().st_mode):
        raise OSError(f"{path} is a FIFO: it cannot be read twice")
    source = open_source(path)
    try:
        while raw := source.take(_BATCH):
            core.take(raw, now)
    finally:
        source.close()
    core.reached_end()
