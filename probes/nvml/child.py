"""The disposable process that loads NVML: `python -m probes.nvml.child`.

It prints one line of JSON a thing as soon as it knows it (the driver, each GPU, the end), so that
what was learnt before a hang is not lost. A value that NVML refuses is `[code]`: its return code in
a list. It judges nothing and keeps nothing; serial numbers and UUIDs are not even asked for.

It is started every other minute on every node: what it imports is most of what a round costs.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from probes.driver_library import NVML, preload
from probes.nvml import asks, unused

if __name__ == "__main__":
    sys.modules["ctypes.util"] = unused  # in no other process

import pynvml  # the one place that may

UNKNOWN_CODE = 999


def main() -> int:
    """Print everything; exit status 0 whenever something was printed to its end."""
    nvml: Any = pynvml
    preload(NVML)
    if code := _refused(lambda: nvml.nvmlInitWithFlags(0), nvml):
        _print({"init": code})
        return 0
    count = _value(nvml.nvmlDeviceGetCount, nvml)
    _print({"driver": _value(nvml.nvmlSystemGetDriverVersion, nvml), "count": count})
    for index in range(count if isinstance(count, int) else 0):
        _print(_gpu(nvml, index))
    _print({"end": True})
    return 0


def _gpu(nvml: Any, index: int) -> dict[str, Any]:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as problem:
        return {"gpu": index, "handle": [problem.value]}
    values = _fields(nvml, handle, asks.FIELDS.items(), 0)
    values |= {name: _value(partial(call, nvml, handle), nvml) for name, call in asks.CALLS.items()}
    return {
        "gpu": index,
        "pci": _value(lambda: nvml.nvmlDeviceGetPciInfo(handle).busId, nvml),
        "minor": _value(lambda: nvml.nvmlDeviceGetMinorNumber(handle), nvml),
        "values": values,
        "links": _links(nvml, handle, values["nvlink_count"], asks.LINK_FIELDS),
        "c2c": _links(nvml, handle, values["c2c_count"], asks.C2C_FIELDS),
    }


def _links(nvml: Any, handle: Any, count: Any, fields: Mapping[str, int]) -> list[dict[str, Any]]:
    number = min(count, asks.LINK_LIMIT) if isinstance(count, int) else 0
    return [_fields(nvml, handle, fields.items(), link) for link in range(number)]


def _fields(
    nvml: Any, handle: Any, wanted: Iterable[tuple[str, int]], scope: int
) -> dict[str, Any]:
    """All in one call, which is one trip into the driver."""
    names = list(wanted)
    try:
        answers = nvml.nvmlDeviceGetFieldValues(handle, [(number, scope) for _, number in names])
    except nvml.NVMLError as problem:
        return {name: [problem.value] for name, _ in names}
    return {name: _field(answer) for (name, _), answer in zip(names, answers, strict=True)}


_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Of the union, by NVML's value type."""


def _field(answer: Any) -> Any:
    if answer.nvmlReturn:
        return [answer.nvmlReturn]
    if not 0 <= answer.valueType < len(_MEMBERS):
        return [UNKNOWN_CODE]
    return getattr(answer.value, _MEMBERS[answer.valueType])


def _value(ask: Callable[[], Any], nvml: Any) -> Any:
    """A value as JSON has it, or `[code]`; a binding that is older than a call lacks the call."""
    try:
        said = ask()
    except nvml.NVMLError as problem:
        return [problem.value]
    except (AttributeError, TypeError, ValueError):
        return [nvml.NVML_ERROR_FUNCTION_NOT_FOUND]
    if isinstance(said, bytes):
        return said.decode("ascii", "replace")
    return {"list": said} if isinstance(said, list) else said


def _refused(ask: Callable[[], Any], nvml: Any) -> Any:
    said = _value(ask, nvml)
    return said if isinstance(said, list) else None


def _print(document: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Everything is printed; taking the interpreter apart costs as much as all that was asked.
    os._exit(main())
