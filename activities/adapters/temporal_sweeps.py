"""The Temporal Schedules by which a cluster's idle nodes are swept, and tried in pairs.

Every watcher that starts makes them, or brings them up to the policy. A person's pause stays.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from activities.adapters.reaching import reach
from activities.adapters.temporal import RPC_TIMEOUT, translated
from activities.adapters.temporal_connection import Connection
from activities.search_attributes import CLUSTER
from fleet import names
from fleet.errors import Refused
from policies.durations import parse_duration
from policies.prove_terms import ProveTerms
from policies.schema import Policy

_log = logging.getLogger(__name__)
NOTHING = "the policy sweeps nothing"
"""The note of a schedule that we paused ourselves."""
CATCH_UP = timedelta(minutes=10)
"""A sweep that was missed for longer is left out: the next one finds the same nodes."""
JITTER = 10
"""A sweep may begin later by this part of the interval: many clusters don't begin at once."""
UNUSED = parse_duration("1h")
"""The interval of a schedule that is paused because there is none."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One schedule: its id, which begins the ids of its runs, what it starts, and how often."""

    id: str
    workflow: str
    look: timedelta | None
    summary: str


async def keep_schedules(temporal: Connection, cluster: str, policy: Policy) -> None:
    """Bring the schedules up to the policy as soon as Temporal answers; then wait to be cancelled.

    Nodes are held and repaired without sweeps, so a Temporal that refuses is only said.
    """
    try:
        await reach("sweeps", lambda: schedule_sweeps(temporal.client, cluster, policy), None)
    except Refused as problem:
        _log.error("what=no-sweeps cluster=%s why=%r", cluster, str(problem))
    await asyncio.Event().wait()


async def schedule_sweeps(client: Client, cluster: str, policy: Policy) -> None:
    """Make the schedules as the policy wants them, or change those that are there."""
    proving = policy.proving
    sweep = None if policy.dry_run else proving.sweep
    pairs = None if policy.dry_run else proving.pairs
    said = f"{cluster}: look for idle nodes"
    sweeps = _Kind(
        names.sweep_id(cluster),
        names.SWEEP_WORKFLOW,
        sweep.look if sweep else None,
        f"{said} whose proof is old",
    )
    trials = _Kind(
        names.pairs_id(cluster),
        names.PAIRS_WORKFLOW,
        pairs.look if pairs else None,
        f"{said} to try with each other",
    )
    for each in (sweeps, trials):
        await _keep(client, cluster, policy, each)


async def _keep(client: Client, cluster: str, policy: Policy, kind: _Kind) -> None:
    wanted = _schedule(cluster, policy, kind)
    attributes = TypedSearchAttributes([SearchAttributePair(CLUSTER, cluster)])
    try:
        await translated(
            client.create_schedule(
                kind.id,
                wanted,
                search_attributes=attributes,
                rpc_timeout=RPC_TIMEOUT,
            )
        )
    except ScheduleAlreadyRunningError:
        handle = client.get_schedule_handle(kind.id)
        await translated(handle.update(lambda found: _updated(found, wanted)))


def _updated(found: ScheduleUpdateInput, wanted: Schedule) -> ScheduleUpdate:
    """What a person paused stays paused, with what they wrote."""
    state = found.description.schedule.state
    if state.paused and state.note != NOTHING:
        wanted = replace(wanted, state=state)
    return ScheduleUpdate(wanted)


def _schedule(cluster: str, policy: Policy, kind: _Kind) -> Schedule:
    look = kind.look or UNUSED
    return Schedule(
        action=ScheduleActionStartWorkflow(
            kind.workflow,
            args=[cluster, ProveTerms.of(policy)],
            id=kind.id,
            task_queue=names.TASK_QUEUE,
            static_summary=kind.summary,
            typed_search_attributes=TypedSearchAttributes([SearchAttributePair(CLUSTER, cluster)]),
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=look)], jitter=look / JITTER),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP),
        state=ScheduleState(paused=kind.look is None, note="" if kind.look else NOTHING),
    )
