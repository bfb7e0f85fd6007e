"""A driver that answers nobody: whoever asks it stays until the machine is booted.

A real one sleeps uninterruptibly; here it is deaf to TERM, and ends with whoever asked, so that a
run leaves nothing behind.
"""

import os
import signal
import time

from simulator.hardware.machine import Machine
from simulator.hardware.nature import Ail

LOOK_SECONDS = 0.25


def hang_with(machine: Machine) -> None:
    """Return at once where the driver is well, else when it is, or when nobody waits any more."""
    parent = os.getppid()
    while hangs(machine) and os.getppid() == parent:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(LOOK_SECONDS)


def hangs(machine: Machine) -> bool:
    """Whether the driver hangs; a machine that has gone does not."""
    try:
        return Ail.DRIVER_HANG in machine.read().ails
    except FileNotFoundError:
        return False
