"""What came of a trial in pairs: each pair's outcome as a course, and what each node is told.

Pure. Whom the courses blame is `policies/pairwise.py`; here is what they are made of: what both
sides of a pair said, and how fast it was beside the fastest pair of its trial.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from fleet.check import PAIRS
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.outcome import Outcome, OutcomeKind
from fleet.part import HOST
from fleet.proving import ProofEnd, TrialWord
from policies.amounts import Percent
from policies.pairwise import Course, Judgement, Pair, next_pairs

WRONG, HUNG, STUCK, BROKEN, SLOW = (
    f"{PAIRS}:{each}" for each in ("wrong", "hung", "stuck", "broken", "slow")
)
FAILED_BY = (WRONG, HUNG, STUCK, BROKEN, SLOW)
"""Codes of what happened to a pair after its two nodes had greeted each other, the worst first."""
_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Tried:
    """A pair that was tried: how it went by itself, why, and its pace in bytes a second, 0 where
    none was told. `first` is before `second` by name."""

    first: str
    second: str
    course: Course
    code: str = ""
    pace: float = 0.0


def tried(nodes: tuple[str, str], outcome: Outcome) -> Tried:
    """Read the outcome of a pair, whose findings are those of both sides."""
    first, second = sorted(nodes)
    said = [each for each in outcome.findings if each.check == PAIRS]
    course, code = _course(outcome, said)
    paces = [each.value for each in said]
    pace = min(paces) if len(paces) == len(nodes) else 0.0
    return Tried(first, second, course, code, pace if course is not Course.UNKNOWN else 0.0)


def courses(trial: Sequence[Tried], slow_below: Percent) -> tuple[Pair, ...]:
    """The pairs as the judge takes them: one far slower than the fastest has failed, too."""
    fastest = max((each.pace for each in trial), default=0.0)
    return tuple(
        Pair(
            each.first,
            each.second,
            Course.FAILED if _is_slow(each, fastest, slow_below) else each.course,
        )
        for each in trial
    )


def next_round(
    nodes: Sequence[str], trial: Sequence[Tried], slow_below: Percent
) -> tuple[tuple[str, str], ...]:
    """Who is to be tried next, each node at most once; empty where nothing new would be learnt.

    Where no pair could be told of, an image lacks what it takes, say, few are enough. And where one
    node was in every pair whose pace is known, nobody has seen how fast the others are without it.
    """
    if len(trial) >= len(nodes) and all(each.course is Course.UNKNOWN for each in trial):
        return ()
    return next_pairs(nodes, courses(trial, slow_below)) or _without_the_common(nodes, trial)


def _without_the_common(
    nodes: Sequence[str], trial: Sequence[Tried]
) -> tuple[tuple[str, str], ...]:
    paced = [{each.first, each.second} for each in trial if each.pace]
    common = set.intersection(*paced) if paced else set()
    met = [{each.first, each.second} for each in trial]
    others = sorted(each for each in nodes if each not in common)
    fresh = [pair for pair in combinations(others, 2) if common and set(pair) not in met]
    return tuple(fresh[:1])


def words(
    judgement: Judgement, trial: Sequence[Tried], slow_below: Percent, one_fabric: bool
) -> dict[str, TrialWord]:
    """What each node of a trial is told. `one_fabric`: they share an NVLink domain."""
    told = {
        node: TrialWord(ProofEnd.PROVEN, f"did well with another: {_seen(node, trial)}")
        for node in judgement.well
    }
    for node in judgement.open:
        told[node] = TrialWord(ProofEnd.UNKNOWN, f"no third node could tell: {_seen(node, trial)}")
    for node in judgement.odd:
        finding = _blamed(node, trial, slow_below, one_fabric)
        told[node] = TrialWord(ProofEnd.FOUND, f"odd: {finding.evidence}", finding)
    return told


def _course(outcome: Outcome, said: Sequence[Finding]) -> tuple[Course, str]:
    """Both sides must have said something; what kept one from meeting says nothing of the pair."""
    codes = [each.code for each in said if each.verdict is not Verdict.OK]
    untold = [each for each in codes if each not in FAILED_BY]
    if outcome.kind is not OutcomeKind.SUCCEEDED or len(said) != len(("one", "other")) or untold:
        return Course.UNKNOWN, next(iter(untold), outcome.reason or f"{PAIRS}:untold")
    failed = next((each for each in FAILED_BY if each in codes), None)
    return (Course.FAILED, failed) if failed else (Course.WELL, "")


def _is_slow(pair: Tried, fastest: float, slow_below: Percent) -> bool:
    share = pair.pace * 1_000 < fastest * slow_below.tenths
    return pair.course is Course.WELL and pair.pace > 0 and share


def _blamed(node: str, trial: Sequence[Tried], slow_below: Percent, one_fabric: bool) -> Finding:
    fastest = max((each.pace for each in trial), default=0.0)
    mine = [each for each in trial if node in (each.first, each.second)]
    slow = [each for each in mine if _is_slow(each, fastest, slow_below)]
    codes = [each.code for each in mine if each.course is Course.FAILED] + [SLOW] * len(slow)
    code = min(codes, key=FAILED_BY.index)
    hung = FaultName.FABRIC_NOT_READY if one_fabric else FaultName.NIC_DEGRADED
    name = {WRONG: FaultName.WRONG_RESULTS, SLOW: FaultName.SLOW}.get(code, hung)
    advice = Advice.DRAIN if code == WRONG else Advice.HOLD
    severity = Severity.DEGRADED if code == SLOW else Severity.FATAL
    evidence = f"{_seen(node, trial)}; its partners did well with others"
    return Finding(
        PAIRS, HOST, Verdict.FAULT, name, code, advice, severity, evidence[:_EVIDENCE_LIMIT]
    )


_EVIDENCE_LIMIT = 300


def _seen(node: str, trial: Iterable[Tried]) -> str:
    """With whom it was tried, and how that went."""
    said = []
    for each in trial:
        if node in (each.first, each.second):
            peer = each.second if node == each.first else each.first
            pace = f" at {each.pace / _GIGA:.1f} GB/s" if each.pace else ""
            said.append(f"with {peer} {each.code or each.course.value}{pace}")
    return ", ".join(said) or "tried with nobody"
