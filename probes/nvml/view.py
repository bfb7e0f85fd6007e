"""Read what the child printed, however much of it came: pure, and never raising.

A value is a number, a text, or `Mute`: NVML's return code in its place. A line that nobody
understands, a count that is short and an end that is missing are kept as facts for the checks.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from probes.parts import short_address

NOT_SUPPORTED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 3, 12, 13
CORRUPTED_INFOROM, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH = 14, 15, 16, 18
DRIVER_NOT_LOADED, TIMEOUT, INTERRUPTS, ARGUMENT_VERSION, UNREADABLE = 9, 10, 11, 25, 999
ABSENT = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION, 22, 26, 30})
"""Return codes that say: this board or driver has no such value. All others: it could not tell."""
LINE_LIMIT = 200
LARGEST = 1 << 64
"""NVML has no number of that size: whatever says one is broken."""


@dataclass(frozen=True, slots=True)
class Mute:
    """NVML's return code where a value should be."""

    code: int

    @property
    def absent(self) -> bool:
        """Whether there is no such value here, rather than one that could not be told."""
        return self.code in ABSENT

    def __str__(self) -> str:
        return f"NVML code {self.code}"


Value = int | float | str | tuple[int, ...] | Mute
NOTHING = Mute(UNREADABLE)


@dataclass(frozen=True, slots=True)
class GpuView:
    """One GPU: its short PCI address (empty where unknown), its values, links by number.

    `handle` is why the GPU could not be asked at all.
    """

    index: int
    pci: str = ""
    handle: Mute | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    links: tuple[Mapping[str, Value], ...] = ()
    c2c: tuple[Mapping[str, Value], ...] = ()

    def value(self, name: str) -> Value:
        """A value by its name in `asks`; mute where the child did not say it."""
        return self.values.get(name, NOTHING)

    def number(self, name: str) -> int | Mute:
        """A whole number, or why there is none."""
        return whole(self.value(name))

    def numbers(self, name: str, count: int) -> tuple[int, ...] | Mute:
        """A value of `count` whole numbers, or why there is none."""
        said = self.value(name)
        if isinstance(said, tuple) and len(said) == count:
            return said if all(abs(each) < LARGEST for each in said) else NOTHING
        return said if isinstance(said, Mute) else NOTHING


@dataclass(frozen=True, slots=True)
class View:
    """Everything that one child said. `whole`: it came to its end, and no line was unreadable.

    `init` is why NVML could not be used at all; `hung`: the child did not come back.
    """

    driver: str = ""
    count: int | Mute = NOTHING
    gpus: tuple[GpuView, ...] = ()
    init: Mute | None = None
    whole: bool = False
    hung: bool = False

    @property
    def missing(self) -> bool:
        """Whether there is no NVML to ask: our sensor's trouble, not the node's."""
        return self.init is not None and self.init.code == LIBRARY_NOT_FOUND

    @property
    def unheard(self) -> bool:
        """Whether nothing came of NVML, and no hang of it either: then nvidia-smi may be asked."""
        said = self.init is not None or self.gpus or self.count != NOTHING
        return self.missing or not (said or self.hung)


def whole(value: Value) -> int | Mute:
    """A whole number, or why there is none."""
    if isinstance(value, bool) or not isinstance(value, int | Mute):
        return NOTHING
    return NOTHING if isinstance(value, int) and abs(value) >= LARGEST else value


def read(output: str, hung: bool = False) -> View:
    """The view in a child's output."""
    documents, unread = _documents(output.splitlines()[:LINE_LIMIT])
    init = next((_value(each["init"]) for each in documents if "init" in each), None)
    head: Mapping[str, Any] = next((each for each in documents if "count" in each), {})
    driver = _value(head.get("driver"))
    ended = any("end" in each for each in documents)
    return View(
        driver=driver if isinstance(driver, str) else "",
        count=whole(_value(head.get("count"))),
        gpus=tuple(_gpu(each) for each in documents if isinstance(each.get("gpu"), int)),
        init=init if isinstance(init, Mute) else None,
        whole=ended and not unread and not hung,
        hung=hung,
    )


def _documents(lines: Iterable[str]) -> tuple[list[Mapping[str, Any]], int]:
    found: list[Mapping[str, Any]] = []
    unread = 0
    for line in lines:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict):
            found.append(document)
        else:
            unread += 1
    return found, unread


def _gpu(document: Mapping[str, Any]) -> GpuView:
    handle = _value(document["handle"]) if "handle" in document else None
    return GpuView(
        index=document["gpu"],
        pci=_address(_value(document.get("pci"))),
        handle=handle if isinstance(handle, Mute) else None,
        values=_values(document.get("values")),
        links=_links(document.get("links")),
        c2c=_links(document.get("c2c")),
    )


def _links(said: Any) -> tuple[Mapping[str, Value], ...]:
    return tuple(_values(each) for each in said) if isinstance(said, list) else ()


def _values(said: Any) -> Mapping[str, Value]:
    if not isinstance(said, dict):
        return {}
    return {str(name): _value(value) for name, value in said.items()}


def _value(said: Any) -> Value:
    match said:
        case bool():
            return int(said)
        case int() | float() | str():
            return said
        case [int() as code]:
            return Mute(code)
        case {"list": [*items]} if all(isinstance(each, int) for each in items):
            return tuple(items)
        case _:
            return NOTHING


def _address(said: Value) -> str:
    try:
        return short_address(said) if isinstance(said, str) else ""
    except ValueError:
        return ""
