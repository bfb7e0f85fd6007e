"""What an examination means for each GPU. Pure.

A GPU is blamed for its products only where somebody has shown that they can be right: another GPU,
or itself in another batch, by the sum that was worked out without any product; or where most others
of its kind agree against it. Else nobody is blamed: it might be the library.
"""

from collections.abc import Iterator, Mapping
from statistics import median

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import Part
from probes.checks.subject import fault, ok, unknown
from probes.checks.under_load import LEAST_PEERS, at_work, best_clock, under_load
from probes.compute.backend import Arithmetic
from probes.compute.baselines import HALF, HOST_LINK, Baselines
from probes.compute.patterns import Kept
from probes.compute.view import Exam, GpuExam, Made

LEAST_TESTED = 0.75
"""Of the memory; where less could be had, somebody took the rest."""
LEAST_OF_MEDIAN = 0.8
"""Of the rate of its like in the same node: sound ones are within a tenth of each other."""


def judge(exam: Exam, parts: Mapping[str, Part], baselines: Baselines) -> tuple[Finding, ...]:
    """Findings of the GPUs in `parts`, which are by address; the others are witnesses."""
    loaded = {pci: at_work(exam.loaded, pci) for pci in exam.gpus}
    found: list[Finding] = []
    for pci, part in parts.items():
        gpu = exam.gpus.get(pci, GpuExam(pci))
        bad = [*_examined(exam, gpu, part), *_paces(exam, gpu, part, baselines)]
        like = [e for e, g in exam.gpus.items() if g.model == gpu.model]
        clocks = [clock for e in like if (clock := best_clock(loaded[e])) is not None]
        bad += under_load(loaded.get(pci, []), clocks, part)
        found += bad or [ok(Check.COMPUTE, part, _notes(gpu, baselines))]
    return tuple(found)


def _examined(exam: Exam, gpu: GpuExam, part: Part) -> Iterator[Finding]:
    if gpu.error:
        code = "compute:out-of-memory" if gpu.short else "compute:error"
        yield unknown(Check.COMPUTE, part, code, gpu.error)
    for arithmetic in Arithmetic:
        yield from _products(exam, gpu, part, arithmetic)
    if gpu.error:
        return
    if gpu.carried is None:
        yield unknown(Check.COMPUTE, part, "compute:copies-untold", "no copies were made")
    elif gpu.carried.bad:
        yield _copied_wrong(exam, gpu, part, gpu.carried.bad)
    yield from _memory(gpu.kept, part)


def _products(exam: Exam, gpu: GpuExam, part: Part, arithmetic: Arithmetic) -> Iterator[Finding]:
    mine = gpu.made.get(arithmetic)
    if mine is None or not mine.sums:
        if not gpu.error:
            said = f"no products in {arithmetic} precision"
            yield unknown(Check.COMPUTE, part, "compute:products-untold", said)
        return
    right = _right(exam, gpu, arithmetic)
    wrong = sum(times for sum_, times in mine.sums.items() if sum_ != right)
    batches = sum(mine.sums.values())
    if right is None:
        said = f"products in {arithmetic} precision differ, and nothing shows which are right"
        yield unknown(Check.COMPUTE, part, "compute:undecided", said)
    elif wrong:
        said = f"{wrong} of {batches} batches of products in {arithmetic} precision are wrong"
        yield fault(
            *(Check.COMPUTE, part, FaultName.WRONG_RESULTS, "compute:products", Advice.DRAIN, said)
        )


def _right(exam: Exam, gpu: GpuExam, arithmetic: Arithmetic) -> int | None:
    """The sum that right products have, where anything has shown it.

    Where most agree on another than the expected one, it may be the library or the expectation that
    is wrong: they are neither blamed nor believed, and whoever differs from them is the odd one.
    """
    made = [each.made[arithmetic] for each in exam.gpus.values() if arithmetic in each.made]
    if exam.expected is not None and any(exam.expected in each.sums for each in made):
        return exam.expected
    like = [e.made[arithmetic] for e in exam.gpus.values() if _alike(e, gpu, arithmetic)]
    agreed = _majority(like)
    if exam.expected is not None and agreed in gpu.made[arithmetic].sums:
        return None
    return agreed


def _alike(one: GpuExam, other: GpuExam, arithmetic: Arithmetic) -> bool:
    return one.model == other.model and arithmetic in one.made


def _majority(made: list[Made]) -> int | None:
    """The one sum of more than half of at least three GPUs."""
    steady = [next(iter(each.sums)) for each in made if len(each.sums) == 1]
    if len(made) < LEAST_PEERS:
        return None
    return next((each for each in steady if 2 * steady.count(each) > len(made)), None)


def _copied_wrong(exam: Exam, gpu: GpuExam, part: Part, bad: int) -> Finding:
    """Host memory takes part in every copy: only one whose like copy right is to blame."""
    said = f"{bad} words came back wrong from a copy there and back"
    others = [each.carried for each in exam.gpus.values() if each.pci != gpu.pci and each.carried]
    if any(each.bad == 0 for each in others):
        name, advice = FaultName.WRONG_RESULTS, Advice.DRAIN
        return fault(Check.COMPUTE, part, name, "compute:copies", advice, said)
    return unknown(Check.COMPUTE, part, "compute:copies-undecided", said)


def _memory(kept: Kept | None, part: Part) -> Iterator[Finding]:
    if kept is None:
        yield unknown(Check.COMPUTE, part, "compute:memory-untold", "the test did not come to it")
    elif kept.bad:
        where = f"the first at word {kept.first:#x}, bits {kept.bits:#018x}"
        said = f"{kept.bad} words of pattern {kept.pattern} read wrong, {where}"
        name, advice = FaultName.UNCONTAINED_MEMORY, Advice.RESET_GPU
        yield fault(Check.COMPUTE, part, name, "compute:memory", advice, said)
    elif kept.size < kept.total * LEAST_TESTED or not kept.size:
        said = f"{kept.size >> 20} of {kept.total >> 20} MiB could be had: others hold the rest"
        yield unknown(Check.COMPUTE, part, "compute:memory-held", said)
    elif kept.patterns < kept.of or not kept.of:
        said = f"time was over after {kept.patterns} of {kept.of} patterns"
        yield unknown(Check.COMPUTE, part, "compute:memory-unfinished", said)


def _paces(exam: Exam, gpu: GpuExam, part: Part, baselines: Baselines) -> Iterator[Finding]:
    """Rates against the type's own, and against the like in this node."""
    rate = _rate(gpu)
    known = baselines.get((gpu.model, HALF))
    if rate and known and rate < known.least:
        said = f"{rate / 1e12:.1f} Tflop/s, at least {known.least / 1e12:.1f}: {known.source}"
        yield _slow(part, "compute:rate", said)
    like = [_rate(each) for each in exam.gpus.values() if each.model == gpu.model and _rate(each)]
    if rate and len(like) >= LEAST_PEERS and rate < LEAST_OF_MEDIAN * median(like):
        said = f"{rate / 1e12:.3g} Tflop/s, its like {median(like) / 1e12:.3g}"
        yield _slow(part, "compute:odd-rate", said)
    link = baselines.get((gpu.model, HOST_LINK))
    for way, moved in _links(gpu):
        if link and moved and moved < link.least:
            said = f"{moved / 1e9:.1f} GB/s {way}, at least {link.least / 1e9:.1f}: {link.source}"
            yield _degraded(part, "compute:host-link", said)


def _notes(gpu: GpuExam, baselines: Baselines) -> str:
    """What was measured, and what of it was not judged."""
    rates = ", ".join(f"{moved / 1e9:.3g} GB/s {way}" for way, moved in _links(gpu))
    lacking = [what for what in (HALF, HOST_LINK) if (gpu.model, what) not in baselines]
    unjudged = f"; no baseline of {gpu.model or 'this GPU'} for {', '.join(lacking)}"
    return f"{_rate(gpu) / 1e12:.3g} Tflop/s, {rates}{unjudged if lacking else ''}"


def _rate(gpu: GpuExam) -> float:
    made = gpu.made.get(Arithmetic.HALF)
    return made.rate if made else 0.0


def _links(gpu: GpuExam) -> Iterator[tuple[str, float]]:
    if gpu.carried:
        yield "from the host", gpu.carried.inward
        yield "to the host", gpu.carried.outward


def _slow(part: Part, code: str, said: str) -> Finding:
    name = FaultName.SLOW
    return fault(Check.COMPUTE, part, name, code, Advice.HOLD, said, Severity.DEGRADED)


def _degraded(part: Part, code: str, said: str) -> Finding:
    name = FaultName.PCIE_DEGRADED
    return fault(Check.COMPUTE, part, name, code, Advice.HOLD, said, Severity.DEGRADED)
