"""Is every network adapter there that should be, and does each link carry what it should?

Fewer than expected is a fault even when every link that is there says ACTIVE: collectives run on,
at a fraction of the bandwidth. EFA says ACTIVE whatever happens, so its state is no evidence.
Errors that the far end reports accuse another node and are not looked at here. A link that comes
and goes is judged by how often it went down in a while (`probes.flaps`).
"""

from collections.abc import Iterator, Mapping

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST, Part, parse_part
from probes import adapters, expectations
from probes.adapters import EFA, Adapter, Port
from probes.checks.subject import Subject, fault, hung, ok, unknown
from probes.settling import settling

ACTIVE, LINK_UP = 4, 5
PER_MINUTE: Mapping[str, float] = {
    "local_link_integrity_errors": 0.0,
    "excessive_buffer_overrun_errors": 0.0,
    "link_error_recovery": 5.0,
    "symbol_error": 2.0,
    "port_rcv_errors": 600.0,
}
"""Errors a minute and port above which it is sick: 120 symbol errors an hour, 10 receive errors a
second, as others have it. Congestion (discards, waits) is none."""
COMMANDS_LOST = "no_completion_cmds"
"""EFA: commands that the device never answered; one is enough."""


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings of the count, of each adapter, and of functions that no driver took."""
    root = subject.machine.root
    try:
        wanted = adapters.functions_on_bus(root)
        seen = subject.read(*adapters.FILES, size=64) if adapters.names_in(root) else None
        there = adapters.read_adapters(root, seen.contents if seen else {})
    except OSError as problem:
        return (unknown(Check.ADAPTERS, HOST, "adapters:unreadable", str(problem)),)
    if seen is not None and seen.hung:
        return (hung(Check.ADAPTERS, "reading the adapters"),)
    subject.counts[expectations.ADAPTERS] = len(there)
    untaken = _untaken(wanted, there)
    counted = _counted(subject, len(there))
    usual = adapters.usual_rate(there), adapters.usual_lanes(there)
    each = [found for one in there for found in _adapter(subject, one, *usual)]
    return (*counted, *untaken, *each)


def _counted(subject: Subject, count: int) -> tuple[Finding, ...]:
    wanted = expectations.expect(subject.machine, expectations.ADAPTERS)
    said = f"{count} adapters"
    if wanted.least is not None and count < wanted.least:
        text = f"{said}, {wanted.least} expected ({wanted.source})"
        return (_missing(HOST, "adapters:missing", text),)
    if wanted.least is None and wanted.most and count < wanted.most:
        text = f"{said} of at most {wanted.most}: set {expectations.ADAPTERS}"
        return (unknown(Check.ADAPTERS, HOST, "adapters:expectation-unknown", text),)
    return (ok(Check.ADAPTERS, HOST, said),)


def _untaken(wanted: Mapping[str, str], there: tuple[Adapter, ...]) -> tuple[Finding, ...]:
    """On the PCI bus but with no driver: the adapter failed to start."""
    taken = {each.pci.lower() for each in there}
    return tuple(
        _missing(_pci_part(pci), "adapters:no-driver", f"{driver} did not take {pci}")
        for pci, driver in sorted(wanted.items())
        if pci not in taken
    )


def _pci_part(pci: str) -> Part:
    try:
        return parse_part(f"pci:{pci.removesuffix('.0')}")
    except ValueError:
        return HOST


def _adapter(
    subject: Subject, adapter: Adapter, usual: Mapping[str, float], lanes: Mapping[str, int]
) -> list[Finding]:
    part = parse_part(f"nic:{adapter.name}")
    found = [each for port in adapter.ports for each in _port(subject, part, adapter, port, usual)]
    found += _narrow(part, adapter, lanes[adapter.driver])
    found += _flapping(subject, part, adapter)
    lost = adapter.counters.get(COMMANDS_LOST)
    rise = None if lost is None else subject.rise_above((adapter.name, COMMANDS_LOST), lost, 0.0)
    if rise is not None:
        text = f"{rise.amount} commands without an answer"
        found.append(_degraded(part, "efa:no-completion", text, Severity.FATAL))
    if not adapter.ports:
        found.append(unknown(Check.ADAPTERS, part, "adapters:no-port", "no port can be read"))
    return found or [ok(Check.ADAPTERS, part)]


def _narrow(part: Part, adapter: Adapter, usual: int) -> Iterator[Finding]:
    """Its slot may give fewer lanes than it could use: only fewer than its like have is a fault."""
    if 0 < adapter.lanes < min(adapter.most, usual):
        text = f"{adapter.lanes} of {adapter.most} lanes of the bus, others have {usual}"
        yield _degraded(part, "adapters:width", text)


def _flapping(subject: Subject, part: Part, adapter: Adapter) -> Iterator[Finding]:
    """What its links do while they settle is no flap."""
    waits = settling(Check.ADAPTERS, part, subject.upsets(), subject.at) is not None
    for link, count in adapter.went_down.items():
        said = subject.kept.flaps.read(f"{adapter.name} {link}", count, subject.at, waits)
        if said:
            yield _degraded(part, "adapters:flaps", f"{link} {said}")


def _port(
    subject: Subject, part: Part, adapter: Adapter, port: Port, usual: Mapping[str, float]
) -> Iterator[Finding]:
    if adapter.driver != EFA:
        yield from _state(part, port)
    fastest = usual[adapter.driver]
    if port.rate == 0.0:
        yield unknown(Check.ADAPTERS, part, "adapters:no-rate", f"rate of port {port.number}")
    elif port.rate < fastest:
        text = f"port {port.number} runs at {port.rate:g} Gb/s, others at {fastest:g}"
        yield _degraded(part, "adapters:slow", text)
    for name, limit in PER_MINUTE.items():
        count, key = port.counters.get(name), (adapter.name, port.number, name)
        rise = None if count is None else subject.rise_above(key, count, limit)
        if rise is not None:
            yield _degraded(part, f"adapters:{name.replace('_', '-')}", f"{name} {rise}")


def _state(part: Part, port: Port) -> Iterator[Finding]:
    if port.state == -1 or port.physical == -1:
        yield unknown(Check.ADAPTERS, part, "adapters:no-state", f"state of port {port.number}")
    elif (port.state, port.physical) != (ACTIVE, LINK_UP):
        text = f"port {port.number}: state {port.state}, physical {port.physical}"
        yield _degraded(part, "adapters:down", text, Severity.FATAL)


def _missing(part: Part, code: str, said: str) -> Finding:
    return fault(Check.ADAPTERS, part, FaultName.NIC_MISSING, code, Advice.REBOOT, said)


def _degraded(part: Part, code: str, said: str, severity: Severity = Severity.DEGRADED) -> Finding:
    advice = Advice.DRAIN if severity is Severity.FATAL else Advice.HOLD
    return fault(Check.ADAPTERS, part, FaultName.NIC_DEGRADED, code, advice, said, severity)
