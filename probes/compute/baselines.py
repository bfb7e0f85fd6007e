"""How fast each type of GPU is known to be: data with its source, and a site's own beside it.

What is here is the least that a sound GPU does, set low, since nobody's machines are ours; what a
site has measured itself goes into `etc/gpumend/baselines.csv` of its hosts and counts instead. A
type that is in neither is not judged.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

HALF, HOST_LINK, ALL_REDUCE, PAIR = "half", "host", "all-reduce", "pair"
"""Products in half precision; copies to or from the host; `all-reduce-N` among N GPUs of a node;
`pair-N` among N GPUs of two nodes, of which none are shipped: nobody's network is ours."""
OWN = "etc/gpumend/baselines.csv"
_UNITS = {"Tflop/s": 1e12, "GB/s": 1e9}
_SIZE_LIMIT = 65_536


@dataclass(frozen=True, slots=True)
class Baseline:
    """The least that is right, in operations or bytes a second, and where that comes from."""

    least: float
    source: str


Baselines = Mapping[tuple[str, str], Baseline]
"""By model, as the driver calls it, and by what is measured."""


def load(root: Path) -> tuple[Baselines, str]:
    """The shipped ones, overlaid by the host's own; and what is wrong with those, or nothing."""
    text = resources.files("probes.compute").joinpath("baselines.csv").read_text("utf-8")
    shipped, _ = parse(text.splitlines())
    try:
        own = (root / OWN).read_bytes()[:_SIZE_LIMIT].decode("utf-8", "replace")
    except FileNotFoundError:
        return shipped, ""
    except OSError as problem:
        return shipped, f"{OWN}: {problem.strerror}"
    found, wrong = parse(own.splitlines())
    return {**shipped, **found}, f"{OWN}: {wrong}" if wrong else ""


def parse(lines: Iterable[str]) -> tuple[Baselines, str]:
    """The rows that can be read, and the first that cannot, in words. Never raises."""
    found: dict[tuple[str, str], Baseline] = {}
    wrong = ""
    try:
        for number, row in enumerate(csv.DictReader(lines), start=2):
            try:
                least = float(row["least"]) * _UNITS[row["unit"]]
                if not 0 < least < float("inf"):
                    raise ValueError
                found[row["model"], row["what"]] = Baseline(least, row["source"] or "")
            except (KeyError, TypeError, ValueError):
                wrong = wrong or f"row {number} is not model,what,least,unit,source"
    except csv.Error as problem:
        wrong = wrong or str(problem)
    return found, wrong
