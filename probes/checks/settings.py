"""Are the GPUs set up as this pool wants them? Asked only where configuration says how.

`GPUMEND_WANT_PERSISTENCE`, `_ECC`, `_MIG`: `on` or `off`; `GPUMEND_WANT_SAME_GPUS=on`: the GPUs
that this machine was first seen with, slot by slot. That one is for machines whose GPUs nobody
exchanges unasked: clouds give another set with every start.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes import expectations, topology
from probes.checks.gpus import Aspect, Seen, each_gpu, mute
from probes.checks.subject import Subject, fault, ok, unknown
from probes.nvml.view import GpuView, Mute

PREFIX = "GPUMEND_WANT_"
PERSISTENCE, ECC, MIG, SAME_GPUS = (
    f"{PREFIX}{each}" for each in ("PERSISTENCE", "ECC", "MIG", "SAME_GPUS")
)
VALUES: Mapping[str, str] = MappingProxyType(
    {PERSISTENCE: "persistence", ECC: "ecc_mode", MIG: "mig_mode"}
)
"""What NVML calls each. ECC and MIG have two numbers: what is, and what the next reset brings."""
_WORDS = {"on": True, "off": False}


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings a GPU, and of the set of them; nothing where nobody said what is wanted."""
    said = {name: os.environ.get(name, "").strip().lower() for name in (*VALUES, SAME_GPUS)}
    wanted = {name: _WORDS[word] for name, word in said.items() if word in _WORDS}
    wrong = [f"{name}={word[:20]!r}" for name, word in said.items() if word and name not in wanted]
    if wrong:
        text = f"{', '.join(wrong)}: on or off"
        return (unknown(Check.SETTINGS, HOST, "settings:configuration", text),)
    found: list[Finding] = []
    if wanted.pop(SAME_GPUS, False):
        found += _same(subject)
    if wanted:
        found += each_gpu(Check.SETTINGS, subject, lambda part, gpu: judge(part, gpu, wanted))
    return tuple(found)


def judge(part: Part, gpu: GpuView, wanted: Mapping[str, bool]) -> Iterator[Seen]:
    """Every wanted setting of one GPU. A GPU that cannot tell its mode has none switched off."""
    for name, on in wanted.items():
        value = VALUES[name]
        is_now = gpu.number(value) if name == PERSISTENCE else gpu.numbers(value, 2)
        if isinstance(is_now, Mute):
            yield mute(Check.SETTINGS, part, is_now, value)
            continue
        now, later = (is_now, is_now) if isinstance(is_now, int) else is_now
        yield Aspect.WELL if bool(now) is on else _mismatch(part, value, now, later)


def _mismatch(part: Part, value: str, now: int, later: int) -> Finding:
    text = f"{value} is {now}, not as wanted"
    if now != later:
        text += f"; the next reset makes it {later}"
    return _complaint(part, f"settings:{value.removesuffix('_mode')}", text)


def _same(subject: Subject) -> Iterator[Finding]:
    now = topology.of(subject.naming.gpus)
    try:
        before = topology.recall(subject.machine)
    except (OSError, ValueError) as problem:
        yield unknown(Check.SETTINGS, HOST, "settings:topology-unreadable", str(problem))
        return
    least = expectations.expect(subject.machine, expectations.GPUS).least or 0
    if not before and len(now) >= least:
        with suppress(OSError):
            topology.remember(subject.machine, now)
    changed = topology.changes(before, now)
    if changed:
        text = f"{', '.join(changed)}; right so? remove {topology.place(subject.machine)}"
        yield _complaint(HOST, "settings:topology", text)
    else:
        yield ok(Check.SETTINGS, HOST)


def _complaint(part: Part, code: str, said: str) -> Finding:
    name = FaultName.CONFIG_MISMATCH
    return fault(Check.SETTINGS, part, name, code, Advice.HOLD, said, Severity.DEGRADED)
