"""Ask the machine, from inside, to boot. Done means asked: the engine looks for the new boot id."""

import sys
from collections.abc import Callable
from datetime import datetime

from fleet.finding import Finding
from fleet.part import HOST
from fleet.step import NodeStepRequest, Step
from probes.checks.subject import Subject, hung, unknown
from probes.child import Tool
from probes.machine import Machine, Missing
from probes.node_step.premise import DONE, Ending, Reason, check_premise, failed
from probes.parts import Naming
from probes.records import Kind, Record, read_record, write_record

SYSTEMCTL = "systemctl"
ASK_LIMIT = 60.0
SYNC_LIMIT = 20.0
"""Seconds; a filesystem that hangs must not keep the machine from the boot that frees it."""


def reboot(machine: Machine, request: NodeStepRequest, clock: Callable[[], datetime]) -> Ending:
    """Ask once an operation: asked before in this boot means that it is on its way."""
    refusal = check_premise(machine, request, clock())
    if refusal:
        return refusal
    try:
        if read_record(machine.state, request.operation):
            return DONE
        record = Record(request.operation, Kind.REBOOT, request.boot_id, (HOST,), -1, clock())
        write_record(machine.state, record)
    except (OSError, ValueError) as problem:
        return failed(Reason.STATE_UNWRITABLE, _note(str(problem)))
    Tool("sync").run([sys.executable, "-I", "-S", "-c", "import os; os.sync()"], SYNC_LIMIT)
    return _ask(machine)


def _ask(machine: Machine) -> Ending:
    subject = Subject(machine, Naming())
    try:
        ended = subject.run(SYSTEMCTL, "reboot", limit=ASK_LIMIT)
    except Missing as problem:
        return failed(Reason.NO_TOOL, _note(str(problem)))
    if ended.hung:
        return failed(Reason.HUNG, hung(Step.REBOOT, SYSTEMCTL))
    if ended.status != 0:
        said = f"exit {ended.status}: {ended.output} {ended.errors}"
        return failed(Reason.NO_TOOL if ended.no_program else Reason.TOOL_FAILED, _note(said))
    return DONE


def _note(text: str) -> Finding:
    return unknown(Step.REBOOT, HOST, "reboot:said", text)
