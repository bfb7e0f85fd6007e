"""The Report: the complete set of faults on a node at one moment, not a change.

Losing one, repeating one, or seeing two in the wrong order does no harm.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from fleet.fault import Fault
from fleet.node import NodeIdentity


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with a node, as seen at `observed` by the watcher's clock.

    `unknown` names what could not be told (a condition type, a silent agent), each with its reason.
    `boot_id` is the Node's own. An empty `faults` with an empty `unknown` is a clean node.
    `witness` says whether our agent speaks for this boot at all: without it, absence of faults
    proves nothing. `managed` is False where people have opted the node out, `pause` what
    the pause annotation says (empty: no reason given), None where there is none.
    """

    node: NodeIdentity
    boot_id: str
    faults: tuple[Fault, ...]
    unknown: tuple[str, ...]
    observed: datetime
    witness: bool = True
    managed: bool = True
    pause: str | None = None

    @property
    def clean(self) -> bool:
        """Positively healthy: no fault, nothing unknown, and a witness that would know."""
        return self.witness and not self.faults and not self.unknown

    @property
    def fingerprint(self) -> str:
        """Equal when nothing that matters changed: no counts, no times, and not which line of a log
        showed the fault last.

        That it is known whose work a fault hit is news, once; which pods they are is read anew by
        whoever acts on it.
        """
        lines = [
            self.node.uid,
            self.boot_id,
            str(self.witness),
            *sorted(map(_matter, self.faults)),
            *sorted(self.unknown),
            *(() if self.managed else ("opted out",)),
            *(() if self.pause is None else (f"paused: {self.pause}",)),
        ]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _matter(fault: Fault) -> str:
    """Of codes from the log only their kind counts: the number moves with each line."""
    kind, _, _ = fault.code.partition(":")
    code = kind if kind in ("xid", "sxid") else fault.code
    return f"{fault.key} {code} {fault.advice}{' hit' * bool(fault.pods)}"
