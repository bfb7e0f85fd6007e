"""Does every GPU compute right, keep its memory, and do so at its pace? Asked by using it.

Only GPUs that this step is about, and that nobody uses, are taken: one with a process is unknown
and is not touched. A few idle others may be witnesses, with less than a gigabyte and for a second.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fleet.check import Check
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.checks.compute_verdicts import judge
from probes.checks.refusals import unusable
from probes.checks.subject import Subject, hung, unknown
from probes.child import Ended
from probes.compute import baselines, view
from probes.compute.child import Plan
from probes.compute.products import SEEDS
from probes.nvml.view import GpuView
from probes.parts import covers

MOST_SECONDS = 300.0
"""Eight GPUs of 192 GiB take four minutes; a step with less time does less, and says so."""
LEAST_SECONDS = 5.0
"""With less nothing useful can be done: a library alone takes some seconds to load."""
MARGIN = 3.0
"""Left of the step's time for its answer."""
SLACK = 10.0
"""Seconds by which the child may overrun its own limit, between two looks at the clock."""
MOST_USED = 0.1
"""Of the memory, in a GPU that is idle; a container may not see the processes of others."""
WITNESSES = 2
NOTHING = "nothing to compute on"


@dataclass(frozen=True, slots=True)
class Chosen:
    """GPUs to examine by address, idle others by address, and why some are left alone."""

    parts: Mapping[str, Part]
    witnesses: Sequence[str]
    left: tuple[Finding, ...]


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings a GPU in scope; unknown where nothing on this machine can use them."""
    seen = subject.nvml()
    if seen.missing:
        said = "no NVML library on this machine: nobody can tell whether its GPUs are idle"
        return (unknown(Check.COMPUTE, HOST, "compute:no-nvml", said),)
    trouble = unusable(Check.COMPUTE, seen)
    if trouble:
        return trouble
    chosen = choose(seen.gpus, subject)
    if not chosen.parts:
        nothing = (unknown(Check.COMPUTE, HOST, "compute:no-gpu", "no GPU is in question here"),)
        return chosen.left or nothing
    seconds = subject.within(MOST_SECONDS + MARGIN + SLACK) - MARGIN - SLACK
    if seconds < LEAST_SECONDS:
        said = f"{max(0, int(seconds))} s are left, and it takes {LEAST_SECONDS:.0f} at least"
        return (*chosen.left, unknown(Check.COMPUTE, HOST, "compute:no-time", said))
    return (*chosen.left, *_use(subject, chosen, seconds))


def choose(gpus: Iterable[GpuView], subject: Subject) -> Chosen:
    """What may be used, as NVML sees it now."""
    parts: dict[str, Part] = {}
    witnesses: list[str] = []
    left: list[Finding] = []
    for gpu in gpus:
        if gpu.handle is not None or not gpu.pci:
            said = f"GPU {gpu.index} of NVML cannot be asked"
            left.append(unknown(Check.COMPUTE, HOST, "nvml:no-handle", said))
            continue
        part = subject.naming.gpu(gpu.pci)
        why_not = unfit(gpu)
        if not any(covers(scope, part) for scope in subject.scope):
            witnesses += [] if why_not else [gpu.pci]
        elif why_not:
            left.append(unknown(Check.COMPUTE, part, *why_not))
        else:
            parts[gpu.pci] = part
    return Chosen(parts, witnesses[:WITNESSES], tuple(left))


def unfit(gpu: GpuView, check: str = Check.COMPUTE) -> tuple[str, str] | None:
    """Code and words for why a check may not use a GPU, None where it may."""
    processes = gpu.value("processes")
    if not isinstance(processes, tuple):
        return f"{check}:use-unknown", f"whether somebody uses it cannot be told: {processes}"
    if processes:
        return f"{check}:in-use", f"{len(processes)} processes use it; it was not touched"
    used, total = gpu.number("memory_used"), gpu.number("memory_total")
    if isinstance(used, int) and isinstance(total, int) and used > total * MOST_USED:
        return f"{check}:in-use", f"{used >> 20} MiB are taken, by a process that is not seen here"
    mig = gpu.numbers("mig_mode", 2)
    if isinstance(mig, tuple) and mig[0]:
        return f"{check}:mig", "it is cut into MIG instances; what they are for is not ours"
    return None


def _use(subject: Subject, chosen: Chosen, seconds: float) -> tuple[Finding, ...]:
    nvml, environment = subject.machine.nvml_child()
    plan = Plan(
        gpus=tuple(chosen.parts),
        seconds=seconds,
        witnesses=tuple(chosen.witnesses),
        nvml=tuple(nvml),
        environment=environment,
        places=subject.machine.libraries,
        seed=secrets.randbelow(SEEDS),
    )
    command, needs = subject.machine.compute_child(plan.text())
    ended, left = subject.use(Check.COMPUTE, command, needs, seconds + SLACK)
    exam = view.read(ended.output)
    known, wrong = baselines.load(subject.machine.root)
    said = () if exam.missing or not exam.begun else judge(exam, chosen.parts, known)
    odd = (unknown(Check.COMPUTE, HOST, "compute:own-baselines", wrong),) if wrong else ()
    return (*_course(ended, left, exam), *odd, *said)


def _course(ended: Ended, left: bool, exam: view.Exam) -> tuple[Finding, ...]:
    """How the child itself fared; nothing where it came to its end."""
    if left or ended.waiting:
        return (hung(Check.COMPUTE, f"work on the GPUs ({exam.phase or 'at its begin'})"),)
    if exam.missing:
        said = f"{NOTHING}: this image has no {exam.missing}; see docs/operating.md, active checks"
        return (unknown(Check.COMPUTE, HOST, "compute:no-backend", said),)
    if exam.whole and not ended.hung:
        return ()
    how = "ran over its time" if ended.hung else f"ended with {ended.status}: {ended.errors[-150:]}"
    said = f"the child {how} ({exam.phase or 'before it began'})"
    return (unknown(Check.COMPUTE, HOST, "compute:broken-off", said),)
