"""Talk to a running DCGM engine through `dcgmi`, and never start one.

Where an engine runs as a Pod, configuration says where it listens, and `dcgmi` may be that of our
own image (Dockerfile, target `dcgm`) where the machine has none.

`dcgmi discovery` and `dcgmi health` end with an error where no engine answers. `dcgmi diag` starts
an engine of its own instead, whatever its options say (read in DCGM 2 to 4.6), and two engines can
deadlock the driver. So it may be asked only of an engine that has just answered: `Found` says so.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from probes import services
from probes.checks.subject import Subject
from probes.child import GRACE, Ended
from probes.dcgm import discovery

DCGMI = "dcgmi"
ADDRESS = "GPUMEND_DCGM_HOST"
"""Where the engine listens (`host:port`, or `unix://path`); dcgmi's own default where not set. Who
sets it says that there is one: it is missed when it does not answer."""
LIMIT = 10.0
"""Seconds for a question to the engine; it answers from what it has gathered, in well under one."""
_ADDRESS_FORM = re.compile(r"[A-Za-z0-9][\w.:/\[\]-]{0,199}")
_UNITS = ("nvidia-dcgm.service", "dcgm.service")
_PROGRAM = "nv-hostengine"
_NO_ENGINE = re.compile(r"unable to (connect|establish a connection)", re.I)
WATCHES_OFF = re.compile(r"health watches not enabled", re.I)


@dataclass(frozen=True, slots=True)
class Found:
    """An engine that has just answered, and which GPU its numbers stand for, by PCI address."""

    gpus: Mapping[str, str]


def installed(subject: Subject) -> bool:
    """Whether there is a `dcgmi` to ask: the machine's, or ours for an engine that is elsewhere."""
    return subject.machine.has(DCGMI) or bool(_ours(subject))


def expected(subject: Subject) -> bool:
    """Whether an engine should answer: we are told where, systemd wants it, it runs, or it has
    answered before."""
    root = subject.machine.root
    here = services.wanted(root, _UNITS) or services.runs(root, _PROGRAM)
    return bool(_host()) or DCGMI in subject.heard or here


def health(subject: Subject) -> Ended:
    """What the watches say that somebody set on all GPUs (dcgmi's own choice); we set none."""
    return _ask(subject, "health", "--check", "--json")


def find(subject: Subject) -> Found | Ended:
    """The engine with its GPUs, or what came instead."""
    ended = _ask(subject, "discovery", "--list")
    gpus = discovery.read(ended.output)
    return ended if gpus is None else Found(gpus)


def diagnose(subject: Subject, found: Found, level: int, limit: float, grace: float) -> Ended:
    """Let an engine run its diagnosis on the GPUs `found`; `grace` is to end it early in order."""
    gpus = ",".join(found.gpus)
    arguments = ("diag", "--run", str(level), "--json", "-i", gpus)
    return _run(subject, *arguments, limit=limit, grace=grace)


def no_engine(ended: Ended) -> bool:
    """Whether nobody answers where the engine should."""
    return bool(_NO_ENGINE.search(f"{ended.output} {ended.errors}"))


def _ask(subject: Subject, *arguments: str) -> Ended:
    return _run(subject, *arguments, limit=LIMIT, grace=GRACE)


def _run(subject: Subject, *arguments: str, limit: float, grace: float) -> Ended:
    """The machine's own `dcgmi` goes first: it is of the version of what runs there."""
    ours = "" if subject.machine.has(DCGMI) else _ours(subject)
    if not ours:
        return subject.run(DCGMI, *arguments, *_host(), limit=limit, grace=grace)
    ended, _ = subject.use(DCGMI, [ours, *arguments, *_host()], {}, limit, grace)
    return ended


def _ours(subject: Subject) -> str:
    """The `dcgmi` of our own image, only for an engine that we are told of: what is on this machine
    alone would be asked through a `dcgmi` of this machine."""
    return (subject.machine.own(DCGMI) or "") if _host() else ""


def is_address(text: str) -> bool:
    """Whether `dcgmi --host` may be given this; what it means there is dcgmi's business."""
    return bool(_ADDRESS_FORM.fullmatch(text))


def _host() -> tuple[str, ...]:
    """What is no address is not handed on: dcgmi's own default holds."""
    said = os.environ.get(ADDRESS, "").strip()
    return ("--host", said) if is_address(said) else ()
