"""One side of a pair, as a step on the node takes part in it, and the word of a trial in pairs.

A pair that fails accuses both and neither, so what a side sees is never a fault of its node: it is
well, or unknown with a code that the trial understands (`policies/trial.py`). The fault is the
trial's word, which needs several pairs; the step that brings it only leaves it for the agent. It
stands for the boot in which it was found: nobody can look again alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fleet.check import PAIRS
from fleet.finding import Finding
from fleet.pair import PairPlace
from fleet.part import HOST
from probes.checks.all_reduce import MARGIN, busy
from probes.checks.refusals import unusable
from probes.checks.subject import Subject, ok, unknown
from probes.child import Ended
from probes.compute import baselines, reduce
from probes.compute.pair import Heard, PairPlan, heard
from probes.compute.reduce import RankSaid
from probes.nvml.view import View

MEET_SECONDS = 240.0
"""For the other Pod to come: its kubelet may pull an image first."""
LEAST_MEET_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Side:
    """What one side came to: its child's end, what it told, and of how many GPUs it has."""

    ended: Ended
    left: bool
    heard: Heard
    said: Mapping[int, RankSaid]
    gpus: int

    @property
    def met(self) -> bool:
        """Whether every rank here has met all others."""
        return len(self.said) == self.gpus and all(each.met for each in self.said.values())


def check(subject: Subject) -> tuple[Finding, ...]:
    """The trial's word where there is one, else how it is to add up with the other side."""
    if subject.word is not None:
        return (subject.word,)
    if subject.pair is None:
        return subject.said_by_trials or (unknown(PAIRS, HOST, "pairs:alone", "it takes two"),)
    seen = subject.nvml()
    if seen.missing:
        said = "no NVML library on this machine: nobody can tell whether its GPUs are idle"
        return (unknown(PAIRS, HOST, "pairs:no-nvml", said),)
    unfit = unusable(PAIRS, seen) or tuple(busy(subject, seen, PAIRS))
    if unfit:
        return unfit
    if not seen.gpus:
        return (unknown(PAIRS, HOST, "pairs:no-gpu", "no GPU is here"),)
    return (_with_the_other(subject, subject.pair, seen),)


def _with_the_other(subject: Subject, place: PairPlace, seen: View) -> Finding:
    over = place.seconds + reduce.GRACE + 2 * MARGIN
    meet = subject.within(MEET_SECONDS + over) - over
    if meet < LEAST_MEET_SECONDS:
        said = f"to add up takes {over:.0f} s, and nothing is left to meet in"
        return unknown(PAIRS, HOST, "pairs:no-time", said)
    plan = PairPlan(
        side=place.side,
        host=place.host,
        port=place.port,
        meeting=place.meeting,
        meet=meet,
        seconds=place.seconds,
        gpu=",".join(each.pci for each in seen.gpus),
        places=subject.machine.libraries,
    )
    command, environment = subject.machine.pair_child(plan.text())
    ended, left = subject.use(PAIRS, command, environment, meet + over - MARGIN)
    side = Side(ended, left, heard(ended.output), reduce.read(ended.output), len(seen.gpus))
    return judge(side, place.seconds, baselines.load(subject.machine.root)[0])


def judge(side: Side, seconds: float, known: baselines.Baselines) -> Finding:
    """What this side says of the pair: well, with its pace in bytes a second, or unknown."""
    untold = _unmet(side.heard) or _uneven(side, seconds)
    if untold:
        return unknown(PAIRS, HOST, f"pairs:{untold[0]}", untold[1])
    reduced = reduce.summed(side.said, 2 * side.gpus, side.gpus)
    pace = f"{reduced.bus / 1e9:.1f} GB/s bus bandwidth among {2 * side.gpus} GPUs of two nodes"
    least = known.get((reduced.model, f"{baselines.PAIR}-{2 * side.gpus}"))
    if least is not None and reduced.bus < least.least:
        said = f"{pace}, at least {least.least / 1e9:.1f}: {least.source}"
        return measured(unknown(PAIRS, HOST, "pairs:slow", said), reduced.bus)
    return measured(ok(PAIRS, HOST, pace), reduced.bus)


def measured(finding: Finding, pace: float) -> Finding:
    """With the pace, in bytes a second."""
    return Finding(
        finding.check,
        finding.part,
        finding.verdict,
        code=finding.code,
        evidence=finding.evidence,
        value=pace,
    )


def _unmet(told: Heard) -> tuple[str, str] | None:
    """Why there was no pair, None where the two greeted each other."""
    if told.greeted:
        return None
    if told.port:
        return "port", f"could not listen: {told.port}"
    return ("unlike", told.unlike) if told.unlike else ("alone", told.alone or "no word")


def _uneven(side: Side, seconds: float) -> tuple[str, str] | None:
    """What went wrong after the greeting, None where all ranks here came to their end."""
    if side.left or side.ended.waiting or side.ended.status == reduce.STUCK:
        return "stuck", "a rank did not end within its limit and was left behind"
    lacks = next((each.missing for each in side.said.values() if each.missing), "")
    if lacks and not side.met:
        return "no-backend", f"a rank could not begin: {lacks}; see docs/operating.md"
    wrong = sum(each.wrong for each in side.said.values())
    if wrong:
        return "wrong", f"{wrong} values came out wrong"
    over = side.ended.hung or side.ended.status == reduce.OVER
    whole = side.met and all(each.ended and len(each.times) > 1 for each in side.said.values())
    if not over and whole and side.ended.status == 0:
        return None
    error = next((each.error for each in side.said.values() if each.error), "")
    how = error or side.ended.errors[-150:]
    if not side.met:
        return "untold", f"{len(side.said)} of {side.gpus} ranks here began: {how}"
    if over:
        return "hung", f"all ranks here met and never came to an end in {seconds:.0f} s"
    return "broken", f"all ranks here met, and one gave up: {how}"
