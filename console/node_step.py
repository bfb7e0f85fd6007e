"""`gpumend node-step`: one step on this node, as a pinned Pod runs it.

Prints the full report on standard output (the Pod's log) and leaves the bounded one in the result
file (the Pod's termination message). Exit status: 0 done, 1 failed, 2 refused.
"""

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path

from console import exits
from fleet.instant import parse_instant
from fleet.pair import parse_place
from fleet.part import parse_part
from fleet.step import NodeStepRequest, NodeStepResult, Step, format_report, parse_finding
from probes.agent.run import ACCEPT_USER_SPACE
from probes.log import say
from probes.machine import HOST_EXEC, Machine, machine
from probes.node_step.premise import Ending, report
from probes.node_step.reboot import reboot
from probes.node_step.reset_gpu import reset_gpu
from probes.node_step.verify import verify

STEPS = (Step.VERIFY, Step.RESET_GPU, Step.REBOOT)
_LOG_LIMIT = 1_000_000
_EXIT = {
    NodeStepResult.DONE: exits.OK,
    NodeStepResult.FAILED: exits.FOUND,
    NodeStepResult.REFUSED: exits.USAGE,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("step", choices=[each.value for each in STEPS])
    parser.add_argument("--operation", required=True, help="names this attempt everywhere")
    parser.add_argument("--incident", required=True)
    parser.add_argument("--boot-id", required=True, help="the boot that the decision rested on")
    parser.add_argument("--not-after", required=True, type=parse_instant, metavar="RFC3339")
    parser.add_argument("--root", default="/", help="where the machine's files are")
    parser.add_argument("--result", type=Path, default=Path("/dev/termination-log"))
    parser.add_argument("--part", action="append", default=[], type=parse_part, dest="parts")
    parser.add_argument("--check", action="append", default=[], dest="checks")
    parser.add_argument("--pair", type=parse_place, metavar="JSON", help="where a pair meets")
    parser.add_argument("--word", type=parse_finding, metavar="JSON", help="what a trial concluded")


def run(arguments: argparse.Namespace) -> int:
    """Run the step and answer."""
    request = request_of(arguments)
    here = machine(arguments.root, None, os.environ.get(HOST_EXEC))
    say("step begins", operation=request.operation, step=request.step, incident=request.incident)
    ending = _perform(request, here)
    answer = report(request, here, ending)
    say("step ends", operation=request.operation, result=answer.result, reason=answer.reason)
    print(format_report(answer, _LOG_LIMIT), flush=True)
    try:
        arguments.result.write_text(format_report(answer), "ascii")
    except OSError as problem:
        say("result cannot be written", file=arguments.result, problem=str(problem))
        return exits.UNREACHABLE
    return _EXIT[answer.result]


def request_of(arguments: argparse.Namespace) -> NodeStepRequest:
    """The step that the parsed arguments ask for."""
    return NodeStepRequest(
        operation=arguments.operation,
        incident=arguments.incident,
        step=Step(arguments.step),
        boot_id=arguments.boot_id,
        not_after=arguments.not_after,
        parts=tuple(arguments.parts),
        checks=tuple(arguments.checks),
        pair=arguments.pair,
        word=arguments.word,
    )


def _perform(request: NodeStepRequest, here: Machine) -> Ending:
    if request.step is Step.RESET_GPU:
        return reset_gpu(here, request, _now)
    if request.step is Step.REBOOT:
        return reboot(here, request, _now)
    return verify(here, request, _now, os.environ.get(ACCEPT_USER_SPACE) == "1")


def _now() -> datetime:
    return datetime.now(UTC)
