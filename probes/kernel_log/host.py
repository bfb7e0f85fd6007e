"""The host under the GPUs: machine checks, memory controllers, firmware records, hung tasks.

A row is a pattern and what it means; the first that matches wins. A decoded bank or a register
dump repeats an event that has its own headline, and reads as nothing or as a mere warning.
"""

import re

from probes.kernel_log.meaning import first, row
from probes.kernel_log.reading import Reading

# fmt: off
MEANINGS = (
    row("mce", r"BERT: Error records from previous boot",
        "bert", "host", "degraded", "hold", "unknown-code"),
    row("mce", r"\[Hardware Error\]: event severity: fatal",
        "cper_fatal", "host", "fatal", "reboot", "host-memory"),
    row("mce", r"\[Hardware Error\]: event severity: recoverable",
        "cper_recoverable", "host", "degraded", "drain", "host-memory"),
    row("mce", r"\[Hardware Error\]: event severity: corrected",
        "cper_corrected", "host", "warning", "none", "none"),
    row("mce", r"\[Hardware Error\]: event severity: info",
        "cper_info", "host", "info", "none", "none"),
    row("mce", r"\[Hardware Error\]: Machine check events logged",
        "logged", "host", "warning", "none", "none"),
    row("mce", r"\[Hardware Error\]: CPU \d+: Machine Check Exception"
        r"|\[Hardware Error\]: CPU \d+: Machine Check: \w+ Bank \d+: [2367abef][0-9a-f]{15}",
        "uncorrected", "host", "fatal", "drain", "host-memory"),  # status bit 61
    row("mce", r"\[Hardware Error\]: CPU \d+: Machine Check: \w+ Bank \d+: [0-9a-f]{16}",
        "corrected", "host", "warning", "none", "none"),
    row("mce", r"mce: Uncorrected hardware memory error"
        r"|Memory failure: .*hardware memory corruption",
        "memory_failure", "host_memory", "fatal", "drain", "host-memory"),
    row("edac", r"EDAC (?:\w+ )?MC\d+: .*Machine Check Event",
        "mce_decode", "host_memory", "warning", "none", "none"),
    row("edac", r"EDAC (?:\w+ )?MC\d+: (?:\d+ )?UE\b",
        "ue", "host_memory", "fatal", "drain", "host-memory"),
    row("edac", r"EDAC (?:\w+ )?MC\d+: (?:\d+ )?CE\b",
        "ce", "host_memory", "warning", "none", "none"),
    row("hang", r"INFO: task .*:\d+ blocked (?:in I/O wait )?for more than \d+ seconds",
        "hung_task", "driver", "warning", "none", "none"),
    row("log", r"systemd-journald\[\d+\]: Missed \d+ kernel messages",
        "messages_lost", "monitor", "degraded", "none", "none"),
    row("app", r"segfault at .* in libnccl\.so",
        "nccl_segfault", "app", "info", "none", "application"),
)
# fmt: on


_SEGFAULT = re.compile(r"\[(\d{1,10})\]: segfault at ")


def process(text: str) -> int | None:
    """The id in a line about a process that crashed; a thread's, which may be its first one's."""
    found = _SEGFAULT.search(text)
    return int(found[1]) if found else None


def read(message: str) -> Reading | None:
    """What a message says about the host or a process, or None."""
    meaning = first(MEANINGS, message)
    return meaning.of() if meaning else None
