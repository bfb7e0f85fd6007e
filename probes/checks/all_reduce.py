"""Do all GPUs of the node add up together, right and fast enough? Asked by letting them.

By `all_reduce_perf` of the NCCL tests where it is configured or on the path, else by our own ranks
on torch.distributed. It is about the whole node: with one GPU in use it is not begun. A collective
that began and never ends is what this check is for: single GPUs may look well where every pair
hangs. It is one only where all time was given: to begin alone may take a minute.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST
from probes.checks.compute import unfit
from probes.checks.refusals import unusable
from probes.checks.subject import Subject, fault, hung, ok, unknown
from probes.child import Ended
from probes.compute import baselines, nccl_tests, reduce
from probes.compute.nccl_tests import TOOL, Reduced
from probes.compute.rank import RankPlan
from probes.machine import Missing
from probes.nvml.view import View

CONFIGURED = "GPUMEND_ALL_REDUCE_PERF"
"""Path of the tool in this image, where it is not on the path."""
SIZE = "4G"
"""Of one all-reduce: beyond it the bandwidth hardly grows."""
WARM_UP, TIMES = 5, 20
MOST_SECONDS = 120.0
"""With all of them a sound node ends, however slowly its libraries load."""
LEAST_SECONDS = 60.0
"""To load libraries, to meet, and to add up, on a slow machine."""
MARGIN = 3.0
"""Once for our own ranks to begin, and once for the answer."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: how it ended, what it came to, and whether the ranks had met before.

    `full` where it was given all the time there is; `lacks` and `error` in a rank's own words.
    """

    ended: Ended
    left: bool
    reduced: Reduced
    met: bool
    full: bool
    lacks: str = ""
    error: str = ""


def check(subject: Subject) -> tuple[Finding, ...]:
    """One finding about the node, or why it could not be asked."""
    seen = subject.nvml()
    if seen.missing:
        said = "no NVML library on this machine: nobody can tell whether its GPUs are idle"
        return (unknown(Check.ALL_REDUCE, HOST, "all-reduce:no-nvml", said),)
    unfit_ = unusable(Check.ALL_REDUCE, seen) or tuple(busy(subject, seen, Check.ALL_REDUCE))
    if unfit_:
        return unfit_
    if len(seen.gpus) < 2:
        return (ok(Check.ALL_REDUCE, HOST, "one GPU has nobody to add up with"),)
    over = reduce.GRACE + 2 * MARGIN
    seconds = subject.within(MOST_SECONDS + over) - over
    if seconds < LEAST_SECONDS:
        said = f"{max(0, int(seconds))} s are left, and it takes {LEAST_SECONDS:.0f} at least"
        return (unknown(Check.ALL_REDUCE, HOST, "all-reduce:no-time", said),)
    run = _by_nccl_tests(subject, len(seen.gpus), seconds)
    if run is None:
        run = _by_ranks(subject, seen, seconds)
    return judge(run, len(seen.gpus), baselines.load(subject.machine.root)[0])


def busy(subject: Subject, seen: View, check: str) -> Iterator[Finding]:
    """Why not every GPU of the node may be used by a check that needs them all."""
    for gpu in seen.gpus:
        if gpu.handle is not None or not gpu.pci:
            said = f"GPU {gpu.index} of NVML cannot be asked"
            yield unknown(check, HOST, "nvml:no-handle", said)
        elif why_not := unfit(gpu, check):
            yield unknown(check, subject.naming.gpu(gpu.pci), *why_not)


def _by_nccl_tests(subject: Subject, gpus: int, seconds: float) -> _Run | None:
    """None where there are none."""
    options = ["-g", f"{gpus}", "-b", SIZE, "-e", SIZE, "-w", f"{WARM_UP}", "-n", f"{TIMES}"]
    configured = os.environ.get(CONFIGURED, "") or shutil.which(TOOL)
    try:
        command = [configured] if configured else subject.machine.command(TOOL)
    except Missing:
        return None
    options += ["-c", "1"]
    ended, left = subject.use(TOOL, [*command, *options], {}, seconds, reduce.GRACE)
    if ended.no_program and not ended.hung:
        return None
    reduced = nccl_tests.read(ended.output)
    return _Run(ended, left, reduced, reduced.ranks > 0, _full(seconds))


def _full(seconds: float) -> bool:
    """Where `within` gave all, rounding may have taken the last bit of it."""
    return seconds >= MOST_SECONDS - 1e-6


def _by_ranks(subject: Subject, seen: View, seconds: float) -> _Run:
    addresses = ",".join(each.pci for each in seen.gpus)
    world = len(seen.gpus)
    plan = RankPlan(0, world, reduce.LOCAL, 0, seconds, addresses, subject.machine.libraries)
    command = [sys.executable, "-m", "probes.compute.reduce", plan.text()]
    environment = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    ended, left = subject.use(
        Check.ALL_REDUCE, command, environment, seconds + reduce.GRACE + MARGIN
    )
    said = reduce.read(ended.output)
    lacks = next((each.missing for each in said.values() if each.missing), "")
    error = next((each.error for each in said.values() if each.error), "")
    met = len(said) == world and all(each.met for each in said.values())
    return _Run(ended, left, reduce.summed(said, world), met, _full(seconds), lacks, error)


def judge(run: _Run, gpus: int, known: baselines.Baselines) -> tuple[Finding, ...]:
    """What it means, for the node: which GPU is at fault nobody can tell from a sum."""
    reduced = run.reduced
    if run.left or run.ended.waiting or run.ended.status == reduce.STUCK:
        return (hung(Check.ALL_REDUCE, "an all-reduce"),)
    over = run.ended.hung or run.ended.status == reduce.OVER
    if over and not run.full:
        said = f"{reduced.ranks} GPUs met, and the time that was left did not suffice"
        return (unknown(Check.ALL_REDUCE, HOST, "all-reduce:no-time", said),)
    if over and run.met:
        said = f"{reduced.ranks} GPUs met and never came to an end in {MOST_SECONDS:.0f} s"
        name, advice = FaultName.FABRIC_NOT_READY, Advice.HOLD
        return (fault(Check.ALL_REDUCE, HOST, name, "all-reduce:hung", advice, said),)
    if reduced.wrong:
        said = f"{reduced.wrong} values came out wrong among {reduced.ranks} GPUs"
        name, advice = FaultName.WRONG_RESULTS, Advice.DRAIN
        return (fault(Check.ALL_REDUCE, HOST, name, "all-reduce:wrong", advice, said),)
    if run.lacks:
        said = f"no {TOOL} here, and torch cannot do it: {run.lacks}; see docs/operating.md"
        return (unknown(Check.ALL_REDUCE, HOST, "all-reduce:no-tool", said),)
    if run.ended.status != 0 or not reduced.bus or reduced.wrong is None or reduced.ranks != gpus:
        why = run.error or run.ended.errors[-200:]
        said = f"exit {run.ended.status}, {reduced.ranks} of {gpus} GPUs: {why}"
        return (unknown(Check.ALL_REDUCE, HOST, "all-reduce:untold", said),)
    least = known.get((reduced.model, f"{baselines.ALL_REDUCE}-{gpus}"))
    pace = f"{reduced.bus / 1e9:.1f} GB/s bus bandwidth among {gpus} GPUs"
    if least is None:
        said = f"{pace}; no baseline of {reduced.model or 'these GPUs'}, so not judged"
        return (ok(Check.ALL_REDUCE, HOST, said),)
    if reduced.bus < least.least:
        said = f"{pace}, at least {least.least / 1e9:.1f}: {least.source}"
        name = FaultName.SLOW
        slow = Advice.HOLD, said, Severity.DEGRADED
        return (fault(Check.ALL_REDUCE, HOST, name, "all-reduce:rate", *slow),)
    return (ok(Check.ALL_REDUCE, HOST, pace),)
