"""The power of a machine, as those outside have it: a switch, and what can be seen from there.

Whoever plays the machine (`simulator.machines`) listens at a pipe and says how it stands in a file;
people, providers and clouds read the file and write the pipe. What runs inside is not asked.
"""

import os
from enum import StrEnum
from pathlib import Path


class NoPower(Exception):
    """Nobody plays the machine, so nobody can start it anew."""


class Power(StrEnum):
    """ON: it runs. DARK: between two boots. OFF: until it is switched on. GONE: given back."""

    ON = "on"
    DARK = "dark"
    OFF = "off"
    GONE = "gone"


class Signal(StrEnum):
    """What the one who plays the machine is told. REBOOT: shut down and start, as asked from
    inside. CYCLE: cut the power and start. CUT and START: each half of it. FAINT: the kubelet dies,
    and what runs beside it goes on. WAKE: time has something new to do."""

    REBOOT = "reboot"
    CYCLE = "cycle"
    CUT = "cut"
    START = "start"
    FAINT = "faint"
    WAKE = "wake"


class Switch:
    """The switch of the machine whose things lie in `base`."""

    def __init__(self, base: Path) -> None:
        self.pipe = base / "power"
        self._state = base / "power-state"
        self._returned = base / "given-back"

    def create(self, on: bool) -> None:
        """The pipe, and a machine that runs or waits to be switched on."""
        os.mkfifo(self.pipe)
        self.show(Power.ON if on else Power.OFF)

    @property
    def state(self) -> Power:
        """How it stands. A machine that was given back is GONE once it is off."""
        state = Power(self._state.read_text())
        return Power.GONE if state is Power.OFF and self._returned.exists() else state

    def show(self, state: Power) -> None:
        """Say how it stands; only for the one who plays it."""
        fresh = self._state.with_suffix(".next")
        fresh.write_text(state)
        fresh.replace(self._state)

    def tell(self, signal: Signal) -> bool:
        """Tell whoever plays the machine; False if there is nobody."""
        try:
            pipe = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            os.write(pipe, f"{signal}\n".encode())
        finally:
            os.close(pipe)
        return True

    def ask(self, signal: Signal) -> None:
        """The same, where it must be heard; raise NoPower if it is not."""
        if not self.tell(signal):
            raise NoPower(str(self.pipe))

    def give_back(self) -> None:
        """Off, for good: nobody will have this machine again."""
        self._returned.touch()
        self.ask(Signal.CUT)
