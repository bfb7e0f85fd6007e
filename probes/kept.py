"""What checks must know of the rounds before, over a restart of the agent: flaps, what changed.

Of one boot: another one begins anew. It goes to the agent's state file with everything else that
the agent knows, and comes back from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.part import Part, parse_part
from probes.flaps import Flaps, read_flaps
from probes.processes import Process
from probes.settling import LONGEST, Upset, Why

Fields = Mapping[str, Any]
"""As JSON has it; never changed once it is made."""


@dataclass(slots=True)
class Kept:
    """What was seen last: of which driver, in which MIG mode each GPU, and what changed when.

    `loader` is the driver's own thread, which is soon found again.
    """

    boot_id: str = ""
    flaps: Flaps = field(default_factory=Flaps)
    driver: str | None = None
    mig: dict[Part, int] = field(default_factory=dict)
    upsets: list[Upset] = field(default_factory=list)
    loader: Process | None = field(default=None, compare=False)

    def saw_driver(self, mark: str, at: float) -> None:
        """By what it says of itself, empty where there is none: another one was loaded since."""
        if mark and self.driver is not None and mark != self.driver:
            self._changed(Upset(Why.DRIVER, at))
        self.driver = mark

    def saw_mig(self, gpu: Part, mode: int, at: float) -> None:
        """The mode of a GPU."""
        if self.mig.get(gpu, mode) != mode:
            self._changed(Upset(Why.MIG, at, gpu))
        self.mig[gpu] = mode

    def fields(self) -> Fields:
        """As the state directory keeps it."""
        return {
            "boot_id": self.boot_id,
            "flaps": self.flaps.fields(),
            "driver": self.driver,
            "mig": dict(self.mig),
            "upsets": [[each.why.name, each.at, each.part] for each in self.upsets],
        }

    def _changed(self, upset: Upset) -> None:
        recent = [each for each in self.upsets if upset.at - each.at < LONGEST]
        self.upsets = [each for each in recent if _what(each) != _what(upset)] + [upset]


def read_kept(fields: Fields) -> Kept:
    """Read it back; raises what `probes.records.BROKEN` lists for anything else."""
    if not fields:
        return Kept()
    driver = fields["driver"]
    return Kept(
        boot_id=str(fields["boot_id"]),
        flaps=read_flaps(fields["flaps"]),
        driver=driver if driver is None else str(driver),
        mig={parse_part(part): int(mode) for part, mode in fields["mig"].items()},
        upsets=[Upset(Why[why], float(at), parse_part(part)) for why, at, part in fields["upsets"]],
    )


def _what(upset: Upset) -> tuple[Why, Part]:
    return upset.why, upset.part
