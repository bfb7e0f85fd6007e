"""Does DCGM answer where it should, and what do the watches say that somebody set in it?

A second witness beside NVML, and never the only one. DCGM that is gone or mute while NVML answers
is trouble of a sensor, not of the node; where it was never installed nothing is said. Its own
limits are as low as one error a minute and some stay until it is restarted, so its failures stand
only when they last (`fault_set`), under the mildest name of their kind. A warning moves nothing.
"""

from collections.abc import Iterable, Mapping

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.checks import dcgm_engine as engine
from probes.checks.subject import Subject, fault, ok, unknown
from probes.child import Ended
from probes.dcgm import health
from probes.dcgm.health import Health, Trouble, Word

SYSTEMS: Mapping[str, FaultName] = {
    "pcie": FaultName.PCIE_DEGRADED,
    "nvlink": FaultName.NVLINK_ERROR,
    "memory": FaultName.CONTAINED_MEMORY,
    "inforom": FaultName.INFOROM,
    "thermal": FaultName.THERMAL,
    "power": FaultName.POWER,
    "connectx": FaultName.NIC_DEGRADED,
    "sm": FaultName.UNKNOWN_CODE,
    "pmu": FaultName.UNKNOWN_CODE,
    "mcu": FaultName.UNKNOWN_CODE,
    "driver": FaultName.UNKNOWN_CODE,
}
"""Systems by their first word, as `Memory system` has it. One not listed is unknown."""


def check(subject: Subject) -> tuple[Finding, ...]:
    """What the watches say of each GPU, and whether DCGM answers; nothing where there is none."""
    if not engine.installed(subject):
        return ()
    ended = engine.health(subject)
    report = health.read(ended.output)
    watched = not engine.WATCHES_OFF.search(ended.output)
    if ended.hung or (report is None and watched):
        return _unheard(subject, ended)
    subject.heard.add(engine.DCGMI)
    if report is None:
        said = "DCGM answers; nobody set its watches"
        return (unknown(Check.DCGM, HOST, "dcgm:no-watches", said),)
    return _judged(subject, report)


def _unheard(subject: Subject, ended: Ended) -> tuple[Finding, ...]:
    """Nothing to say where no engine is to be expected, or where its program is none."""
    gone = engine.no_engine(ended)
    if ended.no_program or (gone and not engine.expected(subject)):
        return ()
    if not gone and not ended.hung:
        said = f"exit {ended.status}: {ended.output} {ended.errors}"
        return (unknown(Check.DCGM, HOST, "dcgm:unreadable", said),)
    code, said = ("dcgm:gone", "no engine answers") if gone else ("dcgm:mute", "dcgmi hangs")
    seen = subject.nvml()
    if seen.hung or seen.init is not None:
        return (unknown(Check.DCGM, HOST, code, f"{said}, and neither does NVML"),)
    name, advice = FaultName.MONITOR_SILENT, Advice.NONE
    said = f"{said} while NVML does"
    return (fault(Check.DCGM, HOST, name, code, advice, said, Severity.WARNING),)


def _judged(subject: Subject, report: Health) -> tuple[Finding, ...]:
    """Failures of each part; ok for every GPU that DCGM has no word against."""
    failures = [each for each in report.troubles if each.word is not Word.WARNING]
    numbers = _numbers(subject) if failures else {}
    found = [_finding(subject, each, numbers) for each in failures]
    if report.overall not in (Word.HEALTHY, Word.WARNING) and not failures:
        said = f"overall {report.overall.value}, and no word of what"
        found.append(unknown(Check.DCGM, HOST, "dcgm:incomplete", said))
    return (*found, *_well(subject, report, {each.part for each in found}))


def _well(subject: Subject, report: Health, accused: set[Part]) -> Iterable[Finding]:
    """A GPU that is accused as the host, since nobody knows which it is, leaves none of them well;
    without a GPU's name there is the host to speak of."""
    if HOST in accused:
        return
    warned = "; ".join(each.said for each in report.troubles if each.word is Word.WARNING)
    said = f"warns: {warned}" if warned else ""
    yield ok(Check.DCGM, HOST, said)
    for pci in sorted(subject.naming.gpus):
        part = subject.naming.gpu(pci)
        if part not in accused:
            yield ok(Check.DCGM, part)


def _numbers(subject: Subject) -> Mapping[str, str]:
    found = engine.find(subject)
    return found.gpus if isinstance(found, engine.Found) else {}


def _finding(subject: Subject, trouble: Trouble, numbers: Mapping[str, str]) -> Finding:
    pci = numbers.get(trouble.entity) if trouble.group == "GPU" else None
    part = HOST if pci is None else subject.naming.gpu(pci)
    said = f"{trouble.group} {trouble.entity}, {trouble.system}: {trouble.word.value}"
    said = f"{said}: {trouble.said}" if trouble.said else said
    system = (trouble.system.lower().split() or [""])[0]
    name = SYSTEMS.get(system)
    if trouble.word is Word.FAILURE and name is not None:
        return fault(Check.DCGM, part, name, f"dcgm:{system}", Advice.HOLD, said, Severity.DEGRADED)
    return unknown(Check.DCGM, part, "dcgm:unlisted", said)
