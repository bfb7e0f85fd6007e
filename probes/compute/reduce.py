"""All ranks of one node: `python -m probes.compute.reduce PLAN`, where there are no NCCL tests.

It starts a rank a GPU in its own session, lets them print, and ends with them or at its time. What
the lines mean is read by `read`: pure, and never raising.
"""

import json
import math
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from probes.compute.nccl_tests import Reduced
from probes.compute.rank import RankPlan, plan_of

LINE_LIMIT = 10_000
TEXT_LIMIT = 200
LOCAL = "127.0.0.1"
OVER = 124
"""Exit status where time was over before all ranks had ended."""
STUCK = 125
"""And where one of them could not be ended: it is left behind."""
GRACE = 30.0
"""Seconds between asking ranks to end and leaving them: the driver takes a context down slowly."""


@dataclass(frozen=True, slots=True)
class RankSaid:
    """What one rank told: whether it met the others, its times, and why it could not go on."""

    met: bool = False
    model: str = ""
    size: int = 0
    times: tuple[float, ...] = ()
    wrong: int = 0
    error: str = ""
    missing: str = ""
    ended: bool = False


def main(arguments: Sequence[str]) -> int:
    """PLAN is that of the first rank here, whose `gpu` are all GPUs here, joined by commas; 0 when
    all ends well.

    Port 0 is one that is free.
    """
    plan = plan_of(arguments[0])
    plan = replace(plan, port=plan.port or _free_port(plan.host))
    until = time.monotonic() + plan.seconds
    ranks = [subprocess.Popen(_command(each)) for each in _plans(plan)]  # noqa: S603
    late = [each for each in ranks if _wait(each, until) is None]
    for each in late:
        each.terminate()
    until = time.monotonic() + GRACE
    stuck = [each for each in late if _wait(each, until) is None]
    if late:
        return STUCK if stuck else OVER
    return max((abs(each.returncode) for each in ranks), default=1)


def _command(plan: RankPlan) -> list[str]:
    return [sys.executable, "-m", "probes.compute.rank", plan.text()]


def _wait(rank: "subprocess.Popen[bytes]", until: float) -> int | None:
    """Its exit status, None where it has none by then; `until` is in monotonic seconds."""
    try:
        return rank.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _plans(plan: RankPlan) -> list[RankPlan]:
    gpus = plan.gpu.split(",")
    return [
        replace(plan, rank=rank, gpu=gpu)
        for rank, gpu in enumerate(gpus[: plan.world], start=plan.rank)
    ]


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as server:
        return int(server.getsockname()[1])


def read(output: str) -> dict[int, RankSaid]:
    """Everything that the ranks told, by rank."""
    said: dict[int, RankSaid] = {}
    for line in output.splitlines()[:LINE_LIMIT]:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and _count(document.get("rank")) is not None:
            rank = document["rank"]
            said[rank] = _more(said.get(rank, RankSaid()), document)
    return said


def summed(said: Mapping[int, RankSaid], world: int, here: int | None = None) -> Reduced:
    """What it came to: the slowest rank's median counts, without its first. Of the `world` so many
    are `here`, and all where nothing is said."""
    told = [each for each in said.values() if len(each.times) > 1]
    slowest = max((median(each.times[1:]) for each in told), default=0.0)
    size = max((each.size for each in told), default=0)
    models = {each.model for each in said.values()}
    whole = len(told) == (here or world) and all(each.ended for each in told)
    return Reduced(
        ranks=sum(each.met for each in said.values()),
        model=models.pop() if len(models) == 1 else "",
        bus=2 * (world - 1) / world * size / slowest if whole and slowest else 0.0,
        wrong=max((each.wrong for each in told), default=None),
    )


def _more(known: RankSaid, line: Mapping[str, Any]) -> RankSaid:
    match line:
        case {"met": _}:
            return replace(known, met=True, model=_text(line.get("model")))
        case {"seconds": float() as seconds} if math.isfinite(seconds) and seconds > 0:
            size, wrong = _count(line.get("bytes")) or 0, _count(line.get("wrong"))
            bad = known.wrong + (1 if wrong is None else wrong)  # an untold count is no right one
            times = (*known.times, seconds)
            return replace(known, size=size, times=times, wrong=bad)
        case {"missing": missing}:
            return replace(known, missing=_text(missing) or "no word")
        case {"error": error}:
            return replace(known, error=_text(error) or "no word")
        case {"end": True}:
            return replace(known, ended=True)
    return known


def _text(said: Any) -> str:
    return said[:TEXT_LIMIT] if isinstance(said, str) else ""


def _count(said: Any) -> int | None:
    whole = isinstance(said, int) and not isinstance(said, bool) and 0 <= said < 1 << 62
    return said if whole else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
