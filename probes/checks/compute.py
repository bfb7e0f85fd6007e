"""Does every GPU compute right, keep its memory, and do so at its pace? Asked by using it."""

from fleet.check import Check
from fleet.finding import Finding
from fleet.part import HOST
from probes.checks.subject import Subject, unknown


def check(subject: Subject) -> tuple[Finding, ...]:
    """Unknown where nothing on this machine can run it."""
    del subject
    return (unknown(Check.COMPUTE, HOST, "compute:no-backend", "nothing here can load a GPU"),)
