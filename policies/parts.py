"""Which parts a step is about: a reset is of whole GPUs, whatever on them is sick."""

import re
from functools import lru_cache

from fleet.part import Part
from fleet.step import Step


@lru_cache(maxsize=1024)
def gpu_of(part: Part) -> Part:
    """The GPU that a part belongs to: `gpu:3` for `gpu:3/mig:1` and for `nvlink:3/7`.

    A part that belongs to no GPU is returned as it is.
    """
    link = re.fullmatch(r"nvlink:(\d+)/\d+", part)
    if link:
        return Part(f"gpu:{link[1]}")
    return Part(part.split("/mig:")[0])


def fits(step: Step, part: Part) -> bool:
    """Whether a step can be about a part: a reset is of GPUs; a PCI address may be one's."""
    return step is not Step.RESET_GPU or part.startswith(("gpu:", "nvlink:", "pci:"))
