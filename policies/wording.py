"""Decisions in sentences for people: what is known, why this comes next, what a person must do."""

from fleet.fault import Fault
from fleet.instant import format_second
from fleet.names import MANAGED_LABEL, PAUSE_ANNOTATION
from fleet.step import Step
from policies.durations import format_duration
from policies.ladder import Guard, Move, On
from policies.plan import plan_of
from policies.questions import not_forced
from policies.scene import Scene
from policies.tolerance import stay_of

MOST_FACTS = 12
NEXT = (
    Guard.NEXT_IS_END_JOB,
    Guard.NEXT_IS_RESET,
    Guard.NEXT_IS_REBOOT,
    Guard.NEXT_IS_REPLACE,
)


def facts_of(scene: Scene) -> tuple[str, ...]:
    """The facts that matter now, worst first, bounded."""
    return (*_faults(scene), *_witnesses(scene), *_hands(scene), *_attempts(scene))[:MOST_FACTS]


def _faults(scene: Scene) -> tuple[str, ...]:
    lines = [
        f"{each.fault.name} on {each.fault.part} ({each.fault.code})"
        f" since {format_second(each.first)}"
        + (", seen by our own check" if each.proven else "")
        + (f", hit pod {', '.join(each.fault.pods)}" if each.fault.pods else "")
        for each in scene.standing
    ]
    return tuple(lines[: MOST_FACTS // 2])


def _witnesses(scene: Scene) -> tuple[str, ...]:
    report = scene.incident.report
    if report is None:
        return ("no report yet",)
    unknown = tuple(f"unknown: {each}" for each in report.unknown[:2])
    silent = () if report.witness else ("our agent does not speak for this boot",)
    healthy = ("the node reports healthy",) if scene.report_healthy else ()
    return (*unknown, *silent, *healthy)


def _hands(scene: Scene) -> tuple[str, ...]:
    """What people wrote on the node itself."""
    report, since = scene.incident.report, scene.opted_out_at
    out = (f"opted out by label {MANAGED_LABEL}=false",) if since else ()
    if report is None or scene.incident.annotated is None:
        return out
    return (*out, f"paused by annotation {PAUSE_ANNOTATION}: {report.pause or 'no reason given'}")


def _attempts(scene: Scene) -> tuple[str, ...]:
    cursor = scene.cursor
    if cursor is None:
        return ()
    who = "" if cursor.ours else "not by us: "
    detail = cursor.outcome.detail or cursor.outcome.reason
    return (f"last: {who}{cursor.step} {scene.on}" + (f" ({detail})" if detail else ""),)


def reasons_for(scene: Scene, move: Move) -> tuple[str, ...]:
    """Why this move, and none before it."""
    if move.to is Step.GIVE_BACK:
        return ("the lease is not needed now",)
    if move.when is not Guard.ALWAYS:
        return (_why(scene, move), *_people(scene))
    return (f"after {scene.cursor.step} {scene.on}" if scene.cursor else "a new incident",)


def _why(scene: Scene, move: Move) -> str:
    plan = plan_of(scene)
    if move.when in NEXT and plan:
        rest = ", then ".join(plan.steps)
        return f"{plan.fault.name} on {plan.fault.part}: {rest}, then hand-off"
    if move.when is Guard.TOLERATED and plan:
        return f"jobs may stay {format_duration(stay_of(scene))} after the first sight"
    if move.when is Guard.QUEUED and scene.cursor and scene.cursor.outcome.detail:
        return f"{move.when}: {scene.cursor.outcome.detail}"
    return str(move.when)


def _people(scene: Scene) -> tuple[str, ...]:
    orders = scene.incident.orders[-1:]
    return tuple(f"{each.verb} by {each.actor}: {each.reason}" for each in orders)


def needs_of(scene: Scene, move: Move) -> tuple[str, ...]:
    """Exactly what a person must do or find out; for a standing hand-off what it said at first."""
    handed = scene.incident.handed_off
    if move.when is Guard.HANDED_OFF and handed:
        return handed.needs
    if move.when is Guard.REHEARSED:
        return ("nothing: this was a dry run, and every step was rehearsed",)
    plan = plan_of(scene)
    if move.when is Guard.NO_WAY and plan:
        return plan.needs
    if move.when is Guard.NO_WAY:
        return (_unknown(scene),)
    if move.when is Guard.PAUSE_OVER:
        return ("decide what becomes of the pause: resume, cancel or release",)
    if move.when is Guard.OUT_OF_BOUNDS:
        return (f"look at {_node(scene)}: {len(scene.incident.attempts)} attempts in one incident",)
    return (_after_the_last(scene),)


def _node(scene: Scene) -> str:
    return scene.incident.node.name


def _unknown(scene: Scene) -> str:
    report = scene.incident.report
    unknown = "; ".join(report.unknown) if report and report.unknown else "its agent is silent"
    return f"find out whether {_node(scene)} is well: {unknown or 'nothing says so'}"


def _after_the_last(scene: Scene) -> str:
    assert scene.cursor, "without an attempt there is nothing to hand off"
    step, outcome = scene.cursor.step, scene.cursor.outcome
    detail = outcome.detail or outcome.reason or "no detail"
    if step is Step.VERIFY and scene.on is On.PASSED:
        return _contradiction(scene)
    if step is Step.VERIFY and scene.on is On.STANDS:
        return _recanted(scene)
    if step is Step.VERIFY:
        return f"check {_node(scene)} by hand: {scene.tries} verifies could not tell ({detail})"
    if step is Step.RECALL:
        return f"say whether to go on: past attempts on this machine cannot be read ({detail})"
    if step is Step.LEASE:
        waited = format_duration(scene.now - scene.cursor.since)
        return f"make room in the disruption budget: no lease for {waited} ({detail})"
    if step is Step.DRAIN:
        said = not_forced(scene)
        return f"empty {_node(scene)}, or end its jobs: {detail}" + (f"; {said}" if said else "")
    return f"see why {step} on {_node(scene)} fails after {scene.tries} tries: {detail}"


def _contradiction(scene: Scene) -> str:
    codes = ", ".join(each.fault.code for each in scene.standing)
    passes = f"our own checks passed {scene.tries} times on {_node(scene)}"
    if not codes:
        return f"see why {_node(scene)} is not reported healthy: {passes}"
    lasting = [each.fault for each in scene.standing if each.cleared]
    if lasting:
        return (
            f"say what becomes of {_node(scene)}: {passes}, which does not undo {_named(lasting)}"
        )
    return f"suspect the witness, not the node: {passes}, while {codes} still says otherwise"


def _recanted(scene: Scene) -> str:
    seen = _named([each.fault for each in scene.standing])
    said = f"the agent of {_node(scene)} says that it is well"
    return f"find out who is right: {said}, our own check saw {seen} {scene.tries} times"


def _named(faults: list[Fault]) -> str:
    return ", ".join(f"{each.name} on {each.part} ({each.code})" for each in faults)
