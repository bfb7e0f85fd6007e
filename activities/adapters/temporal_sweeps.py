"""The Temporal Schedule by which a cluster's idle nodes are swept.

Every watcher that starts makes it, or brings it up to the policy. A person's pause of it stays.
"""

import asyncio
import logging
from dataclasses import replace
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


async def keep_schedule(temporal: Connection, cluster: str, policy: Policy) -> None:
    """Bring the schedule up to the policy as soon as Temporal answers; then wait to be cancelled.

    Nodes are held and repaired without sweeps, so a Temporal that refuses is only said.
    """
    try:
        await reach("sweeps", lambda: schedule_sweeps(temporal.client, cluster, policy), None)
    except Refused as problem:
        _log.error("what=no-sweeps schedule=%s why=%r", names.sweep_id(cluster), str(problem))
    await asyncio.Event().wait()


async def schedule_sweeps(client: Client, cluster: str, policy: Policy) -> None:
    """Make the schedule as the policy wants it, or change the one that is there."""
    wanted = _schedule(cluster, policy)
    attributes = TypedSearchAttributes([SearchAttributePair(CLUSTER, cluster)])
    try:
        await translated(
            client.create_schedule(
                names.sweep_id(cluster),
                wanted,
                search_attributes=attributes,
                rpc_timeout=RPC_TIMEOUT,
            )
        )
    except ScheduleAlreadyRunningError:
        handle = client.get_schedule_handle(names.sweep_id(cluster))
        await translated(handle.update(lambda found: _updated(found, wanted)))


def _updated(found: ScheduleUpdateInput, wanted: Schedule) -> ScheduleUpdate:
    """What a person paused stays paused, with what they wrote."""
    state = found.description.schedule.state
    if state.paused and state.note != NOTHING:
        wanted = replace(wanted, state=state)
    return ScheduleUpdate(wanted)


def _schedule(cluster: str, policy: Policy) -> Schedule:
    sweep = None if policy.dry_run else policy.proving.sweep
    look = sweep.look if sweep else UNUSED
    return Schedule(
        action=ScheduleActionStartWorkflow(
            names.SWEEP_WORKFLOW,
            args=[cluster, ProveTerms.of(policy)],
            id=names.sweep_id(cluster),
            task_queue=names.TASK_QUEUE,
            static_summary=f"{cluster}: look for idle nodes whose proof is old",
            typed_search_attributes=TypedSearchAttributes([SearchAttributePair(CLUSTER, cluster)]),
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=look)], jitter=look / JITTER),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP),
        state=ScheduleState(paused=sweep is None, note="" if sweep else NOTHING),
    )
