"""Composition root: settings, adapters, registration, roles, graceful stop. Nothing imports it.

`python -m worker --role incidents|watcher|all`. `incidents` works on incidents and the budget,
`watcher` finds sick nodes and admits them. It waits for a Temporal or an API server that is away,
refuses to start where something must be mended first, and stops gracefully on SIGTERM.
"""

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.worker import Worker

from activities import decide
from activities.adapters import kubernetes as kubernetes_adapter
from activities.adapters import temporal_connection
from activities.adapters.kubernetes_access import NotConfigured
from activities.adapters.temporal import TemporalIncidents
from activities.adapters.temporal_budget import TemporalBudget
from activities.adapters.temporal_checks import NotReady, check_retention, check_search_attributes
from activities.adapters.temporal_memory import TemporalMemory
from activities.close import CloseActivities
from activities.coalescer import Coalescer
from activities.drain import DrainActivities
from activities.hold import HoldActivities
from activities.lease import BudgetActivities, LeaseActivities
from activities.pinned_pod import PinnedPods
from activities.reboot import FromInside, RebootActivities
from activities.recall import Recall
from activities.release import ReleaseActivities
from activities.reset_gpu import ResetGpuActivities
from activities.scope_claims import ScopeClaims
from activities.verify import VerifyActivities
from console import exits
from fleet import names
from fleet.errors import Refused, Transient
from fleet.ports import Kubernetes
from intake.rules import PolicyRules
from intake.settings import Settings as Limits
from intake.settings import read_settings
from intake.watcher import Watcher
from policies.document import PolicyErrors, default_policy, load
from policies.schema import Policy
from workflows.disruption_budget import DisruptionBudget
from workflows.node_remediation import NodeRemediation
from workflows.sandbox import RUNNER
from workflows.timing import HEARTBEATS_EVERY

T = TypeVar("T")
Connect = Callable[[], AbstractAsyncContextManager[Kubernetes]]
_log = logging.getLogger("gpumend.worker")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 10.0
"""Seconds between tries to reach something that is away."""
WAIT_LIMIT = timedelta(hours=1)
"""After this the process ends with exit status 3, for its supervisor to tell people."""
GRACE = timedelta(seconds=20)
"""For running activities to end on SIGTERM; less than the thirty seconds a Pod is given."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the process is told by flags, each with its variable `GPUMEND_*`."""

    role: str
    cluster: str
    image: str
    policy: Path | None
    grace: timedelta


@dataclass(frozen=True, slots=True)
class Reached:
    """The two things outside that everything here needs."""

    temporal: Client
    kubernetes: Kubernetes


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--role", choices=("incidents", "watcher", "all"), default=_env("ROLE", "all")
    )
    parser.add_argument("--cluster", default=_env("CLUSTER", "default"), help="name of the cluster")
    parser.add_argument(
        "--policy", type=Path, default=_env("POLICY"), help="policy file of the watcher"
    )
    parser.add_argument(
        "--image",
        default=_env("IMAGE", f"gpumend:{version('gpumend')}"),
        help="image of the Pods that run steps on nodes",
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=float(_env("GRACE", str(GRACE.total_seconds())) or 0),
        help="seconds for running steps to end on SIGTERM",
    )


def run(arguments: argparse.Namespace, connect: Connect = kubernetes_adapter.connect) -> int:
    """Run until told to stop; return the exit status. `connect` opens the port to Kubernetes."""
    _log_to_stderr()
    settings = Settings(
        role=arguments.role,
        cluster=arguments.cluster,
        image=arguments.image,
        policy=arguments.policy,
        grace=timedelta(seconds=max(1.0, arguments.grace)),
    )
    try:
        policy = _read_policy(settings)
        limits = read_settings(os.environ)
    except (PolicyErrors, OSError, ValueError) as problem:
        _log.error("what=refused why=%r", str(problem))
        return exits.USAGE
    try:
        return asyncio.run(_main(settings, policy, limits, connect))
    except (NotReady, Refused) as problem:
        _log.error("what=refused why=%r", str(problem))
        return exits.FOUND
    except NotConfigured as problem:
        _log.error("what=refused why=%r", str(problem))
        return exits.USAGE
    except Transient as problem:
        _log.error("what=gave-up why=%r", str(problem))
        return exits.UNREACHABLE


async def _main(settings: Settings, policy: Policy, limits: Limits, connect: Connect) -> int:
    """Start what the role asks for and run it until a signal says stop."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with connect() as kubernetes:
        await _serve(settings, policy, limits, kubernetes, stop)
    gc.collect()  # a client that outlives its loop may abort the process at exit
    return exits.OK


async def _serve(
    settings: Settings, policy: Policy, limits: Limits, kubernetes: Kubernetes, stop: asyncio.Event
) -> None:
    """Reach what is needed, check it, and work; leaves no client behind."""
    temporal = await _reach("temporal", temporal_connection.connect, stop)
    if temporal is None:
        return
    reached = Reached(temporal, kubernetes)
    await _reach("temporal", lambda: _check(settings, policy, reached.temporal), stop)
    await _reach("kubernetes", lambda: kubernetes.get("/version"), stop)
    if not stop.is_set():
        await _work(settings, policy, limits, reached, stop)


async def _check(settings: Settings, policy: Policy, client: Client) -> None:
    await check_search_attributes(client)
    if settings.role != "incidents":
        await check_retention(client, policy)


async def _reach(what: str, call: Callable[[], Awaitable[T]], stop: asyncio.Event) -> T | None:
    """Call until it answers, with pauses that grow to a limit; None when told to stop meanwhile.

    Raises `Transient` after WAIT_LIMIT.
    """
    pause, until = FIRST_PAUSE, time.monotonic() + WAIT_LIMIT.total_seconds()
    while not stop.is_set():
        try:
            return await call()
        except Transient as problem:
            if time.monotonic() >= until:
                raise
            _log.warning("what=waiting for=%s pause=%.1fs why=%r", what, pause, str(problem))
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause)
        pause = min(LONGEST_PAUSE, pause * 2)
    return None


async def _work(
    settings: Settings, policy: Policy, limits: Limits, reached: Reached, stop: asyncio.Event
) -> None:
    """Run the role's parts side by side; one that ends by itself ends the process."""
    incidents = TemporalIncidents(reached.temporal, lambda: policy)
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait(), name="stop")]
    async with AsyncExitStack() as stack:
        if settings.role in ("incidents", "all"):
            for each in _workers(settings, reached, incidents):
                await stack.enter_async_context(each)
        if settings.role in ("watcher", "all"):
            watcher = Watcher(
                reached.kubernetes,
                incidents,
                PolicyRules(policy),
                cluster=settings.cluster,
                identity=f"{socket.gethostname()}-{os.getpid()}",
                settings=limits,
            )
            tasks.append(asyncio.create_task(watcher.run(), name="watcher"))
        _log.info("what=ready role=%s cluster=%s", settings.role, settings.cluster)
        done, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        _log.info("what=stopping grace=%s", settings.grace)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        task.result()


def _workers(
    settings: Settings, reached: Reached, incidents: TemporalIncidents
) -> tuple[Worker, Worker]:
    """One for incidents, one for the budget: the latter has a queue of its own."""
    budget = TemporalBudget(reached.temporal, settings.cluster)
    leases = LeaseActivities(ScopeClaims(reached.kubernetes, _now), Coalescer(budget.exchange))
    lender = BudgetActivities(incidents, reached.kubernetes)
    return (
        Worker(
            reached.temporal,
            task_queue=names.TASK_QUEUE,
            workflows=[NodeRemediation],
            activities=_steps(settings, reached),
            workflow_runner=RUNNER,
            graceful_shutdown_timeout=settings.grace,
            max_heartbeat_throttle_interval=HEARTBEATS_EVERY,
        ),
        Worker(
            reached.temporal,
            task_queue=names.BUDGET_TASK_QUEUE,
            workflows=[DisruptionBudget],
            activities=[
                leases.lease,
                leases.give_back,
                lender.grant,
                lender.look_at_leases,
            ],
            workflow_runner=RUNNER,
            graceful_shutdown_timeout=settings.grace,
        ),
    )


def _steps(settings: Settings, reached: Reached) -> Sequence[Callable[..., Any]]:
    """Every step of the ladder as an activity."""
    kubernetes = reached.kubernetes
    pods = PinnedPods(kubernetes, settings.image, _now)
    return (
        decide.decide,
        HoldActivities(kubernetes).hold,
        Recall(TemporalMemory(reached.temporal)).recall,
        DrainActivities(kubernetes).drain,
        ResetGpuActivities(kubernetes, pods).reset_gpu,
        RebootActivities(kubernetes, [FromInside(pods)]).reboot,
        VerifyActivities(kubernetes, pods).verify,
        ReleaseActivities(kubernetes).release,
        CloseActivities(kubernetes).close,
    )


def _read_policy(settings: Settings) -> Policy:
    if settings.policy is None:
        return default_policy()
    return load(settings.policy.read_text(), str(settings.policy))


def _now() -> datetime:
    return datetime.now(UTC)


def _env(name: str, default: str | None = None) -> str | None:
    return os.environ.get(f"GPUMEND_{name}", default)


def _log_to_stderr() -> None:
    """One line an event, to stderr: stdout is for what commands answer."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="at=%(asctime)s level=%(levelname)s from=%(name)s %(message)s",
    )


def main(argv: Sequence[str] | None = None, connect: Connect = kubernetes_adapter.connect) -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(prog="gpumend worker", description=__doc__)
    configure(parser)
    return run(parser.parse_args(argv), connect)


if __name__ == "__main__":
    sys.exit(main())
