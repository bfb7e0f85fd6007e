"""The host under the GPUs: machine checks, memory controllers, firmware records, hung tasks.

A row is a pattern and what it means; the first that matches wins. A decoded bank or a register
dump repeats an event that has its own headline, and reads as nothing or as a mere warning.
"""

import re
from dataclasses import dataclass

from probes.kernel_log.reading import Reading


@dataclass(frozen=True, slots=True)
class Meaning:
    """What lines of one pattern say."""

    pattern: re.Pattern[str]
    kind: str
    code: str
    class_: str
    sev: str
    action: str
    fault: str


def _row(
    pattern: str, kind: str, code: str, class_: str, sev: str, action: str, fault: str
) -> Meaning:
    return Meaning(re.compile(pattern), kind, code, class_, sev, action, fault)


# fmt: off
MEANINGS = (
    _row(r"BERT: Error records from previous boot",
         "mce", "bert", "host", "degraded", "hold", "unknown-code"),
    _row(r"\[Hardware Error\]: event severity: fatal",
         "mce", "cper_fatal", "host", "fatal", "reboot", "host-memory"),
    _row(r"\[Hardware Error\]: event severity: recoverable",
         "mce", "cper_recoverable", "host", "degraded", "drain", "host-memory"),
    _row(r"\[Hardware Error\]: event severity: corrected",
         "mce", "cper_corrected", "host", "warning", "none", "none"),
    _row(r"\[Hardware Error\]: event severity: info",
         "mce", "cper_info", "host", "info", "none", "none"),
    _row(r"\[Hardware Error\]: Machine check events logged",
         "mce", "logged", "host", "warning", "none", "none"),
    _row(r"\[Hardware Error\]: CPU \d+: Machine Check Exception"
         r"|\[Hardware Error\]: CPU \d+: Machine Check: \w+ Bank \d+: [2367abef][0-9a-f]{15}",
         "mce", "uncorrected", "host", "fatal", "drain", "host-memory"),  # status bit 61
    _row(r"\[Hardware Error\]: CPU \d+: Machine Check: \w+ Bank \d+: [0-9a-f]{16}",
         "mce", "corrected", "host", "warning", "none", "none"),
    _row(r"mce: Uncorrected hardware memory error|Memory failure: .*hardware memory corruption",
         "mce", "memory_failure", "host_memory", "fatal", "drain", "host-memory"),
    _row(r"EDAC (?:\w+ )?MC\d+: .*Machine Check Event",
         "edac", "mce_decode", "host_memory", "warning", "none", "none"),
    _row(r"EDAC (?:\w+ )?MC\d+: (?:\d+ )?UE\b",
         "edac", "ue", "host_memory", "fatal", "drain", "host-memory"),
    _row(r"EDAC (?:\w+ )?MC\d+: (?:\d+ )?CE\b",
         "edac", "ce", "host_memory", "warning", "none", "none"),
    _row(r"INFO: task .*:\d+ blocked (?:in I/O wait )?for more than \d+ seconds",
         "hang", "hung_task", "driver", "warning", "none", "none"),
    _row(r"systemd-journald\[\d+\]: Missed \d+ kernel messages",
         "log", "messages_lost", "monitor", "degraded", "none", "none"),
    _row(r"segfault at .* in libnccl\.so",
         "app", "nccl_segfault", "app", "info", "none", "application"),
)
# fmt: on


def read(message: str) -> Reading | None:
    """What a message says about the host or a process, or None."""
    for row in MEANINGS:
        if row.pattern.search(message):
            return Reading(row.kind, row.code, row.class_, row.sev, row.action, row.fault)
    return None
