"""Are all NVLinks up, as fast as their like, and free of errors that rise?

In MIG mode links read as down by design; then nothing is said of them. Counters of before Blackwell
(replay, recovery, CRC) and of NVLink5 are both asked: a board has the ones or the others, and one
that has neither is judged by state and speed alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import Part
from probes.checks.gpus import Aspect, Seen, each_gpu, mute
from probes.checks.subject import Subject, fault, unknown
from probes.nvml.view import NOTHING, GpuView, Mute, Value, whole

PER_MINUTE: Mapping[str, float] = {
    "replay": 5.0,
    "recovery": 1.0,
    "crc": 6_000.0,
    "malformed": 1.0,
    "overrun": 1.0,
    "receive_errors": 600.0,
    "integrity": 1.0,
    "recovery_failed": 0.0,
}
"""Errors a minute and link above which it is sick: 100 CRC errors a second and 10 receive errors a
second as others have it; a failed recovery at once, since the link is then down or about to be."""
UP, ASLEEP = 1, 2
"""A link of NVLink5 sleeps when nobody needs it, and is well."""
_DOWN = 0


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings a link, and one ok a GPU whose links are all well."""
    usual = usual_speed(subject)
    return each_gpu(Check.NVLINK, subject, lambda _, gpu: judge(gpu, subject, usual))


def judge(gpu: GpuView, subject: Subject, usual: int | None) -> Iterator[Seen]:
    """Every link of one GPU."""
    mig = gpu.value("mig_mode")
    if isinstance(mig, tuple) and any(mig):
        yield Aspect.WELL
        return
    if not gpu.links:
        yield _no_links(subject.naming.gpu(gpu.pci), gpu)
    for number, link in enumerate(gpu.links):
        part = subject.naming.link(gpu.pci, number)
        yield _state(part, number, link)
        yield _speed(part, number, link, usual)
        for name in PER_MINUTE:
            yield _rising(part, (gpu.pci, number, name), link.get(name, NOTHING), subject)


def usual_speed(subject: Subject) -> int | None:
    """The speed that most active links of this node have, in MB/s; None where no link tells."""
    speeds = Counter(
        speed
        for gpu in subject.nvml().gpus
        for link in gpu.links
        if isinstance(speed := whole(link.get("speed", NOTHING)), int) and speed > 0
    )
    return max(speeds, key=lambda each: (speeds[each], each), default=None)


def _no_links(part: Part, gpu: GpuView) -> Seen:
    """A card without NVLink says 0, or that it knows no such thing."""
    count = gpu.number("nvlink_count")
    if isinstance(count, Mute):
        return mute(Check.NVLINK, part, count, "nvlink_count")
    return Aspect.WELL


def _state(part: Part, number: int, link: Mapping[str, Value]) -> Seen:
    said = whole(link.get("state", NOTHING))
    if isinstance(said, Mute):
        return mute(Check.NVLINK, part, said, f"state of link {number}")
    if said in (UP, ASLEEP):
        return Aspect.WELL
    if said == _DOWN:
        return _complaint(part, "nvlink:down", f"link {number} is down")
    return unknown(Check.NVLINK, part, "nvlink:unlisted", f"state {said} of link {number}")


def _speed(part: Part, number: int, link: Mapping[str, Value], usual: int | None) -> Seen:
    said = whole(link.get("speed", NOTHING))
    if isinstance(said, Mute):
        return mute(Check.NVLINK, part, said, f"speed of link {number}")
    if usual is None or said >= usual or said == 0:
        return Aspect.WELL
    text = f"link {number} runs at {said} MB/s, most at {usual}"
    return _complaint(part, "nvlink:slow", text, Severity.DEGRADED)


def _rising(part: Part, key: tuple[str, int, str], said: Value, subject: Subject) -> Seen:
    number = whole(said)
    if isinstance(number, Mute):
        return mute(Check.NVLINK, part, number, key[2])
    rise = subject.rise_above(("nvlink", *key), number, PER_MINUTE[key[2]])
    if rise is None:
        return Aspect.WELL
    text = f"{key[2]} {rise}"
    return _complaint(part, f"nvlink:{key[2].replace('_', '-')}", text)


def _complaint(part: Part, code: str, said: str, severity: Severity = Severity.FATAL) -> Finding:
    name = FaultName.NVLINK_ERROR
    return fault(Check.NVLINK, part, name, code, Advice.RESET_GPU, said, severity)
