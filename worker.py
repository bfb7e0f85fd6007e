"""Composition root: adapters meet ports, roles, registration, graceful stop. Nothing imports it.

`python -m worker --role incidents|watcher|all`. `watcher` finds sick nodes and holds them, and
needs Kubernetes alone for that; `incidents` works on incidents and the budget. What is away is
waited for; what must be mended first is refused, with the way to mend it.
"""

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from temporalio.client import Client
from temporalio.worker import Worker

from activities import decide
from activities.adapters import kubernetes as kubernetes_adapter
from activities.adapters.exposition import CannotServe, serving
from activities.adapters.kubernetes_access import NotConfigured
from activities.adapters.provider import provider_of
from activities.adapters.provider_access import read_access as read_provider_access
from activities.adapters.reaching import WAIT_LIMIT, reach
from activities.adapters.temporal import TemporalIncidents
from activities.adapters.temporal_budget import TemporalBudget
from activities.adapters.temporal_checks import NotReady, check_retention, check_search_attributes
from activities.adapters.temporal_connection import Connection
from activities.adapters.temporal_figures import TemporalFigures
from activities.adapters.temporal_memory import TemporalMemory
from activities.adapters.temporal_metrics import TemporalMetrics, metric_buffer
from activities.adapters.temporal_proofs import TemporalProofs
from activities.adapters.temporal_sweeps import keep_schedules
from activities.adapters.webhook import Receiver, notifying, read_receiver
from activities.clock import utc_now
from activities.close import CloseActivities
from activities.coalescer import Coalescer
from activities.complaint import complaining, telling_faults
from activities.drain import DrainActivities
from activities.end_job import EndJobActivities
from activities.event_writer import EventWriter
from activities.hold import HoldActivities
from activities.idle import IdleActivities
from activities.launch import LaunchActivities
from activities.lease import BudgetActivities, LeaseActivities
from activities.means import MeansReader
from activities.notifier import Notifier
from activities.operations import Operations
from activities.pair import PairActivities
from activities.pinned_pod import PinnedPods
from activities.prove import ProveActivities
from activities.prove_lease import ProveLeaseActivities
from activities.reboot import RebootActivities
from activities.reboot_means import ByPower, ByProvider, FromInside
from activities.recall import Recall
from activities.release import GiveBack, ReleaseActivities
from activities.replace import ReplaceActivities
from activities.replace_ways import ByNodeClaim, ByTermination
from activities.reset_gpu import ResetGpuActivities
from activities.scope_claims import ScopeClaims
from activities.standing import Standing
from activities.step_figures import StepFigures, TellingFigures
from activities.storm_notice import announcer
from activities.sweep import SweepActivities
from activities.tell import TellActivities
from activities.verify import VerifyActivities
from activities.witness import Witness
from console import exits, worker_settings
from console.collecting import rarely
from console.worker_settings import Settings
from fleet import names
from fleet.errors import Refused, Transient
from fleet.node import NodeState
from fleet.ports import Kubernetes, Provider
from intake.availability import AvailabilityFigures
from intake.figures import WatcherFigures
from intake.rules import PolicyRules
from intake.settings import Settings as Limits
from intake.settings import read_settings
from intake.watcher import Watcher
from policies.document import PolicyErrors
from policies.schema import Policy
from workflows.disruption_budget import DisruptionBudget
from workflows.keep import KeepForPairs
from workflows.node_remediation import NodeRemediation
from workflows.pairs import TryInPairs
from workflows.prove import ProveNode
from workflows.sandbox import RUNNER, keep_bytecode
from workflows.sweep import SweepNodes
from workflows.timing import HEARTBEATS_EVERY

TELLINGS_AT_ONCE = 1_000
"""They wait for a digest or a slow receiver: what a storm asks, without a step's place."""


@dataclass(frozen=True, slots=True)
class _Voice:
    """How this process tells people what happens, and machines how it stands."""

    events: EventWriter
    notifier: Notifier | None
    figures: CollectorRegistry
    shown: bool


Connect = Callable[[], AbstractAsyncContextManager[Kubernetes]]
_log = logging.getLogger("gpumend.worker")


def run(arguments: argparse.Namespace, connect: Connect = kubernetes_adapter.connect) -> int:
    """Run until told to stop; return the exit status. `connect` opens the port to Kubernetes."""
    _log_to_stderr()
    rarely()
    keep_bytecode()
    settings = worker_settings.settings_of(arguments)
    try:
        policy = worker_settings.read_policy(settings)
        limits = read_settings(os.environ)
        read_provider_access(os.environ)
        receiver = read_receiver(os.environ)
    except (PolicyErrors, OSError, ValueError) as problem:
        _log.error("what=refused why=%r", str(problem))
        return exits.USAGE
    try:
        return asyncio.run(_main(settings, policy, limits, connect, receiver))
    except (NotReady, Refused) as problem:
        _log.error("what=refused why=%r", str(problem))
        return exits.FOUND
    except (NotConfigured, CannotServe) as problem:
        _log.error("what=refused why=%r", str(problem))
        return exits.USAGE
    except Transient as problem:
        _log.error("what=gave-up why=%r", str(problem))
        return exits.UNREACHABLE


async def _main(
    settings: Settings,
    policy: Policy,
    limits: Limits,
    connect: Connect,
    receiver: Receiver | None,
) -> int:
    """Start what the role asks for and run it until a signal says stop."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    registry = CollectorRegistry()
    async with AsyncExitStack() as stack:
        stack.enter_context(serving(settings.metrics, registry))
        kubernetes = await stack.enter_async_context(connect())
        notifier = await stack.enter_async_context(notifying(receiver))
        buffer = metric_buffer() if settings.metrics else None
        temporal = Connection(lambda client: _check(policy, client), buffer)
        incidents = TemporalIncidents(lambda: temporal.client, lambda: policy)
        voice = _Voice(EventWriter(kubernetes), notifier, registry, settings.metrics is not None)
        parts = [_stopped(stop), _work(settings, temporal, kubernetes, incidents, voice)]
        if buffer:
            parts += _figures(settings, temporal, TemporalMetrics(buffer), voice)
        if settings.watches:
            rules = PolicyRules(policy)
            identity = f"{socket.gethostname()}-{os.getpid()}"
            watcher = Watcher(
                kubernetes,
                incidents,
                rules,
                cluster=settings.cluster,
                identity=identity,
                budgets=TemporalBudget(lambda: temporal.client, settings.cluster),
                proofs=TemporalProofs(lambda: temporal.client, lambda: policy),
                settings=limits,
                complain=complaining(voice.events),
                tell=telling_faults(voice.events, notifier),
                announce=announcer(notifier, settings.cluster),
            )
            parts.append(_watch(watcher, kubernetes))
            parts.append(keep_schedules(temporal, settings.cluster, policy))
            registry.register(AvailabilityFigures(lambda: _seen_by(watcher)))
            registry.register(WatcherFigures(lambda: watcher.term if watcher.leading else None))
        await _side_by_side(parts)
    gc.collect()  # a client that outlives its loop may abort the process at exit
    return exits.OK


def _figures(
    settings: Settings, temporal: Connection, measured: TemporalMetrics, voice: _Voice
) -> list[Coroutine[Any, Any, None]]:
    """Everything of this process that is shown besides the watcher's; what keeps it fresh."""
    for each in (measured, TellingFigures(voice.events, voice.notifier)):
        voice.figures.register(each)
    ProcessCollector(registry=voice.figures)
    if not settings.works:
        return [measured.run()]
    source = TemporalFigures(lambda: temporal.client, settings.cluster)
    standing = Standing(source.incidents, source.ledger)
    voice.figures.register(standing)
    return [measured.run(), standing.run()]


def _seen_by(watcher: Watcher) -> Collection[NodeState] | None:
    """The nodes, by the watcher that leads; a copy, since a scrape has a thread of its own."""
    term = watcher.term if watcher.leading else None
    return list(term.nodes.records.values()) if term and term.nodes.synced.is_set() else None


async def _side_by_side(parts: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run the parts until the first one ends; its end, or its error, ends the process."""
    tasks = [asyncio.create_task(each) for each in parts]
    done, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        task.result()


async def _stopped(stop: asyncio.Event) -> None:
    await stop.wait()
    _log.info("what=stopping")


async def _check(policy: Policy, client: Client) -> None:
    """A policy of its own needs a worker on incidents for this only: incidents bring theirs."""
    await check_search_attributes(client)
    await check_retention(client, policy)


async def _watch(watcher: Watcher, kubernetes: Kubernetes) -> None:
    """Watch as soon as Kubernetes answers, wherever Temporal is: sick nodes are held meanwhile."""
    await reach("kubernetes", lambda: kubernetes.get("/version"))
    _log.info("what=ready part=watcher")
    await watcher.run()


async def _work(
    settings: Settings,
    temporal: Connection,
    kubernetes: Kubernetes,
    incidents: TemporalIncidents,
    voice: _Voice,
) -> None:
    """Open the way to Temporal and, where the role says so, work on incidents until cancelled.

    A process that watches has work without Temporal and waits for it as long as that takes.
    """
    client = await temporal.open(None if settings.watches else WAIT_LIMIT)
    if settings.works:
        await reach("kubernetes", lambda: kubernetes.get("/version"))
        async with AsyncExitStack() as stack:
            provider = await stack.enter_async_context(provider_of())
            workers = _workers(settings, client, kubernetes, provider, incidents, voice)
            for each in workers:
                await stack.enter_async_context(each)
            _log.info("what=ready part=incidents cluster=%s", settings.cluster)
            try:
                await asyncio.Event().wait()
            finally:  # together: one after the other they would take the grace twice
                await asyncio.gather(*(each.shutdown() for each in workers))
    await asyncio.Event().wait()


def _workers(
    settings: Settings,
    client: Client,
    kubernetes: Kubernetes,
    provider: Provider,
    incidents: TemporalIncidents,
    voice: _Voice,
) -> tuple[Worker, ...]:
    """For incidents, for the budget and for what people are told: each has a queue of its own."""
    figures = StepFigures(voice.figures) if voice.shown else None
    witness = Witness(voice.events, figures)
    budget = TemporalBudget(lambda: client, settings.cluster)
    claims, coalescer = ScopeClaims(kubernetes, utc_now), Coalescer(budget.exchange)
    leases, proofs = LeaseActivities(claims, coalescer), ProveLeaseActivities(claims, coalescer)
    lender = BudgetActivities(incidents, kubernetes)
    return (
        Worker(
            client,
            task_queue=names.TASK_QUEUE,
            workflows=[NodeRemediation, ProveNode, SweepNodes, TryInPairs, KeepForPairs],
            activities=_steps(settings, client, kubernetes, provider, coalescer.give),
            workflow_runner=RUNNER,
            graceful_shutdown_timeout=settings.grace,
            max_heartbeat_throttle_interval=HEARTBEATS_EVERY,
            interceptors=[witness],
        ),
        Worker(
            client,
            task_queue=names.BUDGET_TASK_QUEUE,
            workflows=[DisruptionBudget],
            activities=[
                leases.lease,
                leases.give_back,
                proofs.lease,
                proofs.give_back,
                lender.grant,
                lender.look_at_leases,
            ],
            workflow_runner=RUNNER,
            graceful_shutdown_timeout=settings.grace,
            interceptors=[witness],
        ),
        Worker(
            client,
            task_queue=names.TELL_TASK_QUEUE,
            activities=[TellActivities(voice.events, voice.notifier).tell],
            max_concurrent_activities=TELLINGS_AT_ONCE,
            graceful_shutdown_timeout=settings.grace,
        ),
    )


def _steps(
    settings: Settings,
    client: Client,
    kubernetes: Kubernetes,
    provider: Provider,
    give_back: GiveBack,
) -> Sequence[Callable[..., Any]]:
    """Every step of the ladder as an activity."""
    pods = PinnedPods(kubernetes, settings.image, utc_now)
    operations = Operations(provider, utc_now)
    prove, sweep = ProveActivities(kubernetes, pods), SweepActivities(kubernetes)
    ways = (
        FromInside(pods),
        ByProvider(kubernetes, operations, utc_now),
        ByPower(kubernetes, operations),
    )
    replaces = (
        ByNodeClaim(kubernetes, utc_now),
        ByTermination(kubernetes, operations, utc_now),
    )
    return (
        decide.decide,
        HoldActivities(kubernetes).hold,
        Recall(TemporalMemory(client), MeansReader(kubernetes, provider)).recall,
        IdleActivities(kubernetes).idle,
        DrainActivities(kubernetes).drain,
        EndJobActivities(kubernetes).end_job,
        ResetGpuActivities(kubernetes, pods).reset_gpu,
        RebootActivities(kubernetes, ways, operations).reboot,
        LaunchActivities(kubernetes, operations).launch,
        ReplaceActivities(kubernetes, replaces).replace,
        VerifyActivities(kubernetes, pods).verify,
        ReleaseActivities(kubernetes, give_back).release,
        CloseActivities(kubernetes).close,
        prove.taint,
        prove.prove,
        prove.end,
        PairActivities(kubernetes, pods).pair,
        sweep.candidates,
        sweep.pair_candidates,
    )


def _log_to_stderr() -> None:
    """One line an event, to stderr: stdout is for what commands answer."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="at=%(asctime)s level=%(levelname)s from=%(name)s %(message)s",
    )
    # It writes every address whole, and the one of a webhook is often its password.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def main(argv: Sequence[str] | None = None, connect: Connect = kubernetes_adapter.connect) -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(prog="gpumend worker", description=__doc__)
    worker_settings.configure(parser)
    return run(parser.parse_args(argv), connect)


if __name__ == "__main__":
    sys.exit(main())
