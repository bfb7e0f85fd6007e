"""What lines of one pattern say: a row of the tables in `nvrm`, `nic` and `host`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from probes.kernel_log.reading import Reading


@dataclass(frozen=True, slots=True)
class Meaning:
    """A pattern, and the words of the reading that its lines get."""

    kind: str
    pattern: re.Pattern[str]
    code: str
    class_: str
    sev: str
    action: str
    fault: str

    def of(
        self, *, pci: str | None = None, dev: str | None = None, about: str | None = None
    ) -> Reading:
        """The reading of a line about this device."""
        return Reading(
            self.kind, self.code, self.class_, self.sev, self.action, self.fault,
            pci=pci, dev=dev, about=about,
        )  # fmt: skip


def row(
    kind: str, pattern: str, code: str, class_: str, sev: str, action: str, fault: str
) -> Meaning:
    """A row of a table."""
    return Meaning(kind, re.compile(pattern), code, class_, sev, action, fault)


def first(table: Iterable[Meaning], message: str) -> Meaning | None:
    """The first row whose pattern is in the message."""
    return next((each for each in table if each.pattern.search(message)), None)
