"""What each step is asked: everything that an activity needs, decided before it starts."""

from datetime import datetime, timedelta

from fleet.check import ACTIVE
from fleet.fault import FaultName
from fleet.finding import Finding, Verdict
from fleet.incident import Attempt
from fleet.order import Verb
from fleet.part import Part
from fleet.reason import DEADLINE
from fleet.request import StepRequest
from fleet.sighting import Sighting
from fleet.step import Step
from policies.fault_terms import AfterDeadline, Drain
from policies.ladder import On
from policies.plan import drain_of, parts_to_reset, plan_of
from policies.questions import force_approved
from policies.scene import Scene

ASKED_AGAIN = (Step.LAUNCH, Step.REPLACE)
"""Steps whose operation id is the provider's idempotency key."""
QUICK = timedelta(minutes=10)
"""For a step that is one or two calls to the API server or the budget, with retries."""

SHOWN_BY_USE = (FaultName.WRONG_RESULTS, FaultName.SLOW)
"""Faults that no reading shows: only an active check can see them, or see them gone."""


def request_for(scene: Scene, step: Step) -> StepRequest:
    """The request of a step from here; its operation id is new, short and deterministic."""
    incident = scene.incident
    faults = tuple(each.fault for each in scene.standing)
    verifying = step is Step.VERIFY
    serves = _next(scene) or Step.REBOOT
    drains = _drains(scene) if step in (Step.DRAIN, Step.END_JOB) else ()
    return StepRequest(
        operation=_operation(scene, step),
        step=step,
        incident=incident.opening.mark.id,
        node=incident.node,
        boot_id=incident.boot_id,
        deadline=deadline_of(scene, step),
        faults=faults,
        parts=_parts(scene, step),
        checks=_checks(scene) if verifying else (),
        settle=_settle(scene) if verifying else timedelta(0),
        force=_forced(scene, step, serves),
        makes_way_for=serves,
        evidence=_evidence(scene),
        harmless=_harmless(scene) if step is Step.RELEASE else (),
        lent=step is Step.RELEASE and scene.asked is not None,
        dry=scene.dry,
        lose_scratch=bool(drains) and all(each.delete_emptydir for each in drains),
        ask_first=step is Step.END_JOB and any(each.ask_first for each in drains),
        job_labels=scene.policy.scopes.job if step is Step.END_JOB else (),
    )


def _drains(scene: Scene) -> tuple[Drain, ...]:
    """How the policy empties a node of what stands."""
    drains = (scene.policy.fault(each.fault.name).drain for each in scene.standing)
    return tuple(each for each in drains if each) or (Drain(),)


def _parts(scene: Scene, step: Step) -> tuple[Part, ...]:
    """What a step is about, sorted."""
    if step is Step.RESET_GPU:
        return parts_to_reset(scene)
    return tuple(sorted({each.fault.part for each in scene.standing}))


def _operation(scene: Scene, step: Step) -> str:
    """A new id, except to ask the provider what became of a call whose answer was lost."""
    incident, lost = scene.incident, _lost(scene, step)
    if lost:
        return lost.request.operation
    return f"{incident.opening.mark.id}-{incident.operations + 1}-{step}"


def _lost(scene: Scene, step: Step) -> Attempt | None:
    """The attempt whose end nobody knows, if the same call tells it."""
    lost = scene.on is On.LOST and scene.cursor and scene.cursor.step is step
    return scene.cursor if lost and step in ASKED_AGAIN else None


def deadline_of(scene: Scene, step: Step) -> datetime:
    """The absolute end of a step; a retry never extends it."""
    limits = scene.limits
    if step is Step.DRAIN:
        return _drain_deadline(scene)
    lost = _lost(scene, step)
    if lost:
        return max(lost.request.deadline, scene.now + limits.step_pause)
    times = {
        Step.END_JOB: limits.end_job,
        Step.RESET_GPU: limits.reset_gpu,
        Step.REBOOT: limits.reboot,
        Step.LAUNCH: limits.launch,
        Step.REPLACE: limits.replace,
    }
    if step is Step.VERIFY:
        return scene.now + limits.verify + _settle(scene)
    return scene.now + times.get(step, QUICK)


def _drain_deadline(scene: Scene) -> datetime:
    """It counts from the lease, or from the end of a launch, whose time is not the Pods'.

    At least one pause from now, so that an empty node is seen to be empty at any time.
    """
    drain = drain_of(scene, _next(scene) or Step.REBOOT)
    assert drain, "a drain is asked for only where there is one to do"
    since = _may_drain_since(scene)
    if _deadline_spent(scene):
        return scene.now + scene.limits.step_pause
    return max(since + drain.deadline, scene.now + scene.limits.step_pause)


def _may_drain_since(scene: Scene) -> datetime:
    leased, launch = scene.leased_at, scene.incident.last(Step.LAUNCH)
    if leased is None:
        return scene.now
    return max(leased, launch.ended) if launch else leased


def _deadline_spent(scene: Scene) -> bool:
    """Whether pods had their time already, and a person said that what is left is to be forced."""
    last = scene.incident.last(Step.DRAIN)
    if last is None or last.outcome.reason != DEADLINE or last.started < scene.round_at:
        return False
    return force_approved(scene, last.request.makes_way_for)


def _next(scene: Scene) -> Step | None:
    plan = plan_of(scene)
    return plan.next if plan else None


def _about(scene: Scene) -> tuple[Sighting, ...]:
    """What a verify is about: what stands, else everything that ever did."""
    return scene.standing or scene.incident.sightings


def _checks(scene: Scene) -> tuple[str, ...]:
    """The checks of every fault concerned, in the policy's order, each once.

    Active ones need the GPUs for themselves: before anything was repaired jobs may still be at
    work, and only what shows in no other way is worth asking then.
    """
    names = [each.fault.name for each in _about(scene)]
    terms = (scene.policy.fault(each).verify for each in names)
    asked = dict.fromkeys(check for each in terms for check in each.checks)
    active = scene.repaired or any(each in SHOWN_BY_USE for each in names)
    return tuple(each.value for each in asked if active or each not in ACTIVE)


def _settle(scene: Scene) -> timedelta:
    """How long the node must be quiet first: only a repair needs that."""
    if not scene.repaired:
        return timedelta(0)
    terms = (scene.policy.fault(each.fault.name).verify for each in _about(scene))
    return max((each.settle for each in terms), default=timedelta(0))


def _forced(scene: Scene, step: Step, serves: Step) -> bool:
    """A drain by policy; a release, and a hold that was taken away, on a person's word.

    The hold of a Node object that was made anew is taken over from the watcher, which knows no more
    than that its machine is back.
    """
    if step is Step.DRAIN:
        drain = drain_of(scene, serves)
        by_policy = drain is not None and drain.after_deadline is AfterDeadline.FORCE
        return by_policy or force_approved(scene, serves)
    removed = scene.incident.hold_removed
    if step is Step.HOLD:
        said = removed is not None and scene.ordered_since(Verb.RESUME, removed.at)
        return said or scene.incident.reborn
    return step is Step.RELEASE and not scene.healthy


def _harmless(scene: Scene) -> tuple[FaultName, ...]:
    return tuple([name for name in FaultName if not scene.concerns(name)])


def _evidence(scene: Scene) -> tuple[Finding, ...]:
    """What the last verify of this very boot saw."""
    verify = scene.accusing
    if verify is None or verify.request.boot_id != scene.incident.boot_id:
        return ()
    return tuple(each for each in verify.outcome.findings if each.verdict is Verdict.FAULT)
