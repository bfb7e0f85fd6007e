"""What one boot's log remembers: readings that mean more, or less, for what came before them.

Bounded, and a function of the lines in their order: the same log gives the same readings.
Nothing here is kept over a boot.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from probes.kernel_log.address import without_function
from probes.kernel_log.reading import Reading

NEAR = 32
"""Lines within which one message explains another ("just before", a record in several lines)."""
EARLY_BOOT_S = 60.0
"""Firmware error records printed this soon after the start describe the boot before."""
MAX_PARTS = 4096
"""Parts remembered of each sort. A log that names more is not one machine's."""

EXPLANATIONS = ("contained-memory", "nvlink-error", "uncontained-memory", "memory-exhausted")
"""Faults that explain a recovery action (Xid 154) of the same GPU; a later one wins."""
_RESETS = (1, 2, 4)
"""Recovery actions whose fault another fault of the same part may explain."""
_LONG_AGO = -NEAR - 1


@dataclass(slots=True)
class Memory:
    """The memory of one boot's log. epoch: counts what was forgotten on evidence."""

    epoch: int = 0
    line: int = 0
    uptime: float | None = None
    gpu_named: tuple[int, str | None] = (_LONG_AGO, None)
    unsupported: tuple[int, str | None] = (_LONG_AGO, None)
    boot_record: int = _LONG_AGO
    explained: dict[str, str] = field(default_factory=dict)
    seen: set[tuple[int | str, str | None]] = field(default_factory=set)
    adapters: set[str] = field(default_factory=set)

    def recall(self, reading: Reading, line: int, uptime: float | None) -> Reading | None:
        """The reading in the light of earlier ones; None where it only explains others.

        Must see every reading for which `concerns` holds, in order. line: number of the line
        that it came from; uptime: seconds since boot, where known.
        """
        self.line, self.uptime = line, uptime
        rule = _rule(reading)
        return rule(self, reading) if rule else reading

    def once(self, reading: Reading) -> bool:
        """Whether such a reading was seen before; from now on it was."""
        key = (reading.code, reading.pci or reading.about)
        before = key in self.seen
        if len(self.seen) < MAX_PARTS:
            self.seen.add(key)
        return before


Rule = Callable[[Memory, Reading], Reading | None]


def concerns(reading: Reading) -> bool:
    """Whether the reading depends on earlier ones, or explains later ones."""
    return _rule(reading) is not None


def notes_only(reading: Reading) -> bool:
    """Whether recalling the reading twice in an epoch is the same as recalling it once."""
    return _rule(reading) in (None, _explains)


def _rule(reading: Reading) -> Rule | None:
    if reading.kind == "xid":
        if reading.code == 154:
            return _recovery
        return _explains if reading.fault in EXPLANATIONS else None
    return RULES.get(reading.code)


def _explains(memory: Memory, reading: Reading) -> Reading:
    part, known = without_function(reading.pci or ""), memory.explained
    if part in known or len(known) < MAX_PARTS:
        known[part] = max(known.get(part, reading.fault), reading.fault, key=EXPLANATIONS.index)
    return reading


def _recovery(memory: Memory, reading: Reading) -> Reading:
    part = without_function(reading.pci or "")
    if reading.recovery == 0:
        memory.explained.pop(part, None)
        memory.epoch += 1
    if reading.recovery in _RESETS and part in memory.explained:
        return replace(reading, fault=memory.explained[part])
    return reading


def _gpu_named(memory: Memory, reading: Reading) -> None:
    memory.gpu_named = (memory.line, reading.pci)


def _of_the_named_gpu(memory: Memory, reading: Reading) -> Reading:
    line, pci = memory.gpu_named
    near = memory.line - line <= NEAR
    return replace(reading, pci=pci) if reading.pci is None and near else reading


def _not_supported(memory: Memory, reading: Reading) -> Reading:
    named = _of_the_named_gpu(memory, reading)
    memory.unsupported = (memory.line, named.pci)
    return named


def _probe_failed(memory: Memory, reading: Reading) -> Reading:
    """A GPU that this driver does not support is no broken GPU: a boot would change nothing."""
    line, pci = memory.unsupported
    another = pci is not None and reading.pci is not None and not _same(pci, reading.pci)
    if reading.kind != "nvrm" or memory.line - line > NEAR or another:
        return reading
    return replace(reading, sev="degraded", action="hold", fault="config-mismatch")


def _same(one: str, other: str) -> bool:
    return without_function(one) == without_function(other)


def _heartbeat(memory: Memory, reading: Reading) -> Reading:
    if not memory.once(reading):
        return reading
    return replace(reading, sev="fatal", action="reset_gpu", fault="firmware-halted")


def _boot_record(memory: Memory, reading: Reading) -> Reading:
    memory.boot_record = memory.line
    return reading


def _firmware_record(memory: Memory, reading: Reading) -> Reading:
    """Never act on what happened before this boot: the boot was the remedy."""
    if memory.uptime is None:
        before = memory.line - memory.boot_record <= NEAR
        memory.boot_record = memory.line if before else memory.boot_record
    else:
        before = memory.uptime < EARLY_BOOT_S
    if not before or reading.action == "none":
        return reading
    return replace(
        reading, sev="degraded", action="hold", fault="unknown-code", note="previous_boot"
    )


def _nonfatal(memory: Memory, reading: Reading) -> Reading:
    """A GPU's or adapter's own errors, once they repeat, will not go away by waiting."""
    own = reading.about is not None and reading.about == reading.pci
    if own and len(memory.adapters) < MAX_PARTS:
        memory.adapters.add(reading.about or "")
    again = memory.once(reading)
    path = own or reading.about in memory.adapters
    return replace(reading, action="drain") if again and path else reading


def _efa_named(memory: Memory, reading: Reading) -> None:
    if reading.pci and len(memory.adapters) < MAX_PARTS:
        memory.adapters.add(reading.pci)


def _tx_timeout(memory: Memory, reading: Reading) -> Reading:
    if reading.fault == "host-degraded" and reading.pci in memory.adapters:
        return replace(reading, fault="nic-degraded")
    return reading


RULES: Mapping[int | str, Rule] = MappingProxyType(
    {
        "gpu_named": _gpu_named,
        "fallen_off_bus": _of_the_named_gpu,
        "not_supported": _not_supported,
        "probe_failed": _probe_failed,
        "gsp_heartbeat": _heartbeat,
        "bert": _boot_record,
        "cper_fatal": _firmware_record,
        "cper_recoverable": _firmware_record,
        "cper_corrected": _firmware_record,
        "cper_info": _firmware_record,
        "uncorrected": _firmware_record,
        "uncorrected_nonfatal": _nonfatal,
        "efa_named": _efa_named,
        "tx_timeout": _tx_timeout,
    }
)
