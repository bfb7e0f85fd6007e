"""The natures of faults: what each prints, what the tools show meanwhile, and what heals it.

A nature is the truth about a broken part. The engine never sees it; it sees the lines and the
answers of the tools. `{bdf}` in a line is the address without function, as Xid lines have it,
`{process}` the process that has the GPU open.
"""

from dataclasses import dataclass
from enum import StrEnum


class Cure(StrEnum):
    """What ends a fault; a cure that the nature does not list leaves it as it was."""

    RESET = "reset"
    BOOT = "boot"
    TIME = "time"


class Ail(StrEnum):
    """What troubles a machine as a whole, until it is booted. The kernel prints nothing of it."""

    DRIVER_HANG = "driver-hang"
    MISSING_ADAPTER = "missing-adapter"
    BAD_NETWORK = "bad-network"
    SLOW_NETWORK = "slow-network"


@dataclass(frozen=True, slots=True)
class Symptoms:
    """What the tools show of a GPU. The defaults are a healthy one's."""

    lost: bool = False
    recovery_action: int = 0
    uncorrected: int = 0
    remap_pending: bool = False
    remap_failed: bool = False
    wrong_results: bool = False
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Nature:
    """One kind of trouble.

    `lines` are printed when it strikes, `again` after a step that did not heal it, `passed` when
    time heals it `lasts` seconds after it struck. `returns` names how often it comes back
    `returns_after` seconds after a cure.
    """

    name: str
    lines: tuple[str, ...]
    cures: frozenset[Cure]
    symptoms: Symptoms = Symptoms()
    again: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    lasts: float = 0.0
    returns: int = 0
    returns_after: float = 0.0


_DOUBLE_BIT = (
    "NVRM: Xid (PCI:{bdf}): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error"
    " (DBE) has been detected on GPU in the framebuffer at physAddr 0x18f31d80 partition 16,"
    " subpartition 3."
)
_UNCONTAINED = "NVRM: Xid (PCI:{bdf}): 95, pid=5171, Uncontained: FBHUB. RST: Yes, D-RST: No"
_WANTS_RESET = (
    "NVRM: Xid (PCI:{bdf}): 154, GPU recovery action changed from 0x0 (None) to 0x1"
    " (GPU Reset Required)"
)
_OFF_THE_BUS = (
    "NVRM: Xid (PCI:{bdf}): 79, pid=0, GPU has fallen off the bus.",
    "NVRM: GPU {bdf}.0: GPU has fallen off the bus.",
    "NVRM: Xid (PCI:{bdf}): 154, GPU recovery action changed from 0x0 (None) to 0x2"
    " (Node Reboot Required)",
)
_BAD_ROW = Symptoms(recovery_action=1, uncorrected=1, remap_pending=True)

MEMORY = Nature(
    name="memory",
    lines=(_DOUBLE_BIT, _UNCONTAINED, _WANTS_RESET),
    cures=frozenset({Cure.RESET, Cure.BOOT}),
    symptoms=_BAD_ROW,
)
"""A bad row of GPU memory: the reset applies the remap."""

STUBBORN_MEMORY = Nature(
    name="stubborn-memory",
    lines=(_DOUBLE_BIT, _UNCONTAINED, _WANTS_RESET),
    cures=frozenset({Cure.BOOT}),
    symptoms=_BAD_ROW,
    again=(_UNCONTAINED, _WANTS_RESET),
)
"""The reset says that it succeeded, and the error is back with the first access."""

LOST = Nature(
    name="lost",
    lines=_OFF_THE_BUS,
    cures=frozenset({Cure.BOOT}),
    symptoms=Symptoms(lost=True, recovery_action=2),
    again=_OFF_THE_BUS,
)
"""Off the bus: nothing reaches it until the machine has started anew."""

DEAD = Nature(
    name="dead",
    lines=_OFF_THE_BUS,
    cures=frozenset(),
    symptoms=Symptoms(lost=True, recovery_action=2),
    again=_OFF_THE_BUS,
)
"""Off the bus for good: only another part would help."""

RELAPSING_MEMORY = Nature(
    name="relapsing-memory",
    lines=MEMORY.lines,
    cures=MEMORY.cures,
    symptoms=_BAD_ROW,
    returns=1,
    returns_after=4.0,
)
"""Healed by a reset, and back a little later."""

LINK_FLAP = Nature(
    name="link-flap",
    lines=(
        "NVRM: Xid (PCI:{bdf}): 154, GPU recovery action changed from 0x0 (None) to 0x3"
        " (Drain P2P)",
    ),
    cures=frozenset({Cure.TIME, Cure.RESET, Cure.BOOT}),
    symptoms=Symptoms(recovery_action=3),
    passed=(
        "NVRM: Xid (PCI:{bdf}): 154, GPU recovery action changed from 0x3 (Drain P2P) to 0x0"
        " (None)",
    ),
    lasts=4.0,
)
"""A link that retrains by itself: the driver asks for a P2P drain, and takes it back."""

APPLICATION = Nature(
    name="application",
    lines=(
        "NVRM: Xid (PCI:{bdf}): 31, {process}, Ch 00000010, intr 00000000. MMU Fault:"
        " ENGINE CE2 HUBCLIENT_CE0 faulted @ 0x7f29_5b8c9000. Fault is of type"
        " FAULT_PRIV_VIOLATION ACCESS_TYPE_VIRT_READ",
        "NVRM: Xid (PCI:{bdf}): 43, {process}, channel 0x00000010",
    ),
    cures=frozenset({Cure.TIME}),
    lasts=0.0,
)
"""A job that read where it may not: the job's fault, the GPU is fine."""

CONTAINED_MEMORY = Nature(
    name="contained-memory",
    lines=(
        "NVRM: Xid (PCI:{bdf}): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu"
        " to activate.",
        "NVRM: Xid (PCI:{bdf}): 94, {process}, Contained: SM (0x1). RST: No, D-RST: No",
    ),
    cures=frozenset({Cure.RESET, Cure.BOOT}),
    symptoms=Symptoms(remap_pending=True),
)
"""A bad row that took one process with it; the rest goes on, and a reset applies the remap."""

FIRMWARE = Nature(
    name="firmware",
    lines=(
        "NVRM: Xid (PCI:{bdf}): 119, pid=2191, name=python3, Timeout after 6s of waiting for RPC"
        " response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).",
        _WANTS_RESET,
    ),
    cures=frozenset({Cure.RESET, Cure.BOOT}),
    symptoms=Symptoms(recovery_action=1),
)
"""The GPU's own processor does not answer the driver; a reset starts it anew."""

STUCK_LINK = Nature(
    name="stuck-link",
    lines=LINK_FLAP.lines,
    cures=frozenset({Cure.RESET, Cure.BOOT}),
    symptoms=Symptoms(recovery_action=3),
    again=LINK_FLAP.lines,
)
"""A link that does not retrain by itself."""

EXHAUSTED_MEMORY = Nature(
    name="exhausted-memory",
    lines=(
        "NVRM: Xid (PCI:{bdf}): 64, pid='<unknown>', name=<unknown>, Row Remapper: Error, no spare"
        " row is left in bank 5",
    ),
    cures=frozenset(),
    symptoms=Symptoms(uncorrected=1, remap_failed=True),
    again=(
        "NVRM: Xid (PCI:{bdf}): 64, pid='<unknown>', name=<unknown>, Row Remapper: Error, no spare"
        " row is left in bank 5",
    ),
)
"""No spare rows are left: nothing but another part helps."""

RIDDLE = Nature(
    name="riddle",
    lines=("NVRM: Xid (PCI:{bdf}): 231, pid=4711, name=python3, unspecified engine event",),
    cures=frozenset(),
)
"""A code that is in no catalogue: somebody has to look."""

WRONG_RESULTS = Nature(
    name="wrong-results",
    lines=(),
    cures=frozenset(),
    symptoms=Symptoms(wrong_results=True),
)
"""It computes wrong now and then, and nothing tells: only who compares results sees it."""

SLOW = Nature(
    name="slow",
    lines=(),
    cures=frozenset({Cure.RESET, Cure.BOOT}),
    symptoms=Symptoms(slow=True),
)
"""It does everything right, at a tenth of its pace."""

NATURES = {
    each.name: each
    for each in (
        MEMORY,
        STUBBORN_MEMORY,
        LOST,
        DEAD,
        RELAPSING_MEMORY,
        LINK_FLAP,
        APPLICATION,
        CONTAINED_MEMORY,
        FIRMWARE,
        STUCK_LINK,
        EXHAUSTED_MEMORY,
        RIDDLE,
        WRONG_RESULTS,
        SLOW,
    )
}
