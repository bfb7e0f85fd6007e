"""Talk to a running DCGM engine through `dcgmi`, and never start one.

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
from probes.child import Ended
from probes.dcgm import discovery

DCGMI = "dcgmi"
ADDRESS = "GPUMEND_DCGM_HOST"
"""Where the engine listens (`host:port`, or `unix://path`); dcgmi's own default where not set."""
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
    """Whether this machine has DCGM at all."""
    return subject.machine.has(DCGMI)


def expected(subject: Subject) -> bool:
    """Whether an engine should answer: systemd wants it, it runs, or it has answered before."""
    root = subject.machine.root
    return DCGMI in subject.heard or services.wanted(root, _UNITS) or services.runs(root, _PROGRAM)


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
    arguments = ("diag", "--run", str(level), "--json", "-i", gpus, *_host())
    return subject.run(DCGMI, *arguments, limit=limit, grace=grace)


def no_engine(ended: Ended) -> bool:
    """Whether nobody answers where the engine should."""
    return bool(_NO_ENGINE.search(f"{ended.output} {ended.errors}"))


def _ask(subject: Subject, *arguments: str) -> Ended:
    return subject.run(DCGMI, *arguments, *_host(), limit=LIMIT)


def _host() -> tuple[str, ...]:
    """What is no address is not handed on: dcgmi's own default holds."""
    said = os.environ.get(ADDRESS, "").strip()
    return ("--host", said) if _ADDRESS_FORM.fullmatch(said) else ()
