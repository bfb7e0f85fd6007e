"""Which parts a step is about: a reset is of whole GPUs, whatever on them is sick."""

import re
from collections.abc import Iterable

from fleet.fault import Fault
from fleet.part import Part
from fleet.step import Step


def gpu_of(part: Part) -> Part:
    """The GPU that a part belongs to: `gpu:3` for `gpu:3/mig:1` and for `nvlink:3/7`.

    A part that belongs to no GPU is returned as it is.
    """
    link = re.fullmatch(r"nvlink:(\d+)/\d+", part)
    if link:
        return Part(f"gpu:{link[1]}")
    return Part(part.split("/mig:")[0])


def parts_for(step: Step, faults: Iterable[Fault]) -> tuple[Part, ...]:
    """What a step is about, sorted; for a reset the GPUs behind the faults."""
    if step is Step.RESET_GPU:
        return tuple(sorted({gpu_of(each.part) for each in faults}))
    return tuple(sorted({each.part for each in faults}))
