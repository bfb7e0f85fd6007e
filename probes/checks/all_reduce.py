"""Do all GPUs of the node reduce together, right and fast enough? Asked by letting them."""

from fleet.check import Check
from fleet.finding import Finding
from fleet.part import HOST
from probes.checks.subject import Subject, unknown


def check(subject: Subject) -> tuple[Finding, ...]:
    """Unknown where nothing on this machine can run it."""
    del subject
    return (unknown(Check.ALL_REDUCE, HOST, "all-reduce:no-tool", "no tool here can run it"),)
