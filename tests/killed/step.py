"""One step in a process of its own, that somebody can kill.

A fork, since importing everything anew takes longer than all that the tests do.
"""

import asyncio
from datetime import timedelta

import httpx
from temporalio.testing import ActivityEnvironment

from activities.adapters.kubernetes import connect
from activities.adapters.provider import WebhookProvider
from activities.adapters.provider_access import ProviderAccess
from activities.operands import Operands
from activities.operations import Operations
from activities.out_of_service import OutOfService
from activities.pinned_pod import PinnedPods
from activities.prove import ProveActivities
from activities.reboot import RebootActivities
from activities.reboot_means import ByProvider
from activities.replace import ReplaceActivities
from activities.replace_ways import ByNodeClaim, ByTermination
from activities.reset_gpu import ResetGpuActivities
from fleet.proving import ProveRequest
from fleet.step import Step
from tests.cluster import now

SHORT = timedelta(seconds=2)


def steps(api, provider):
    """The activities as the worker puts them together, with short waits."""
    operations = Operations(provider, now, poll=timedelta(milliseconds=20))
    off = OutOfService(api, operations, now, limit=SHORT)
    ways = (ByProvider(api, operations, now, clean_up=off),)
    replaces = (ByNodeClaim(api, now), ByTermination(api, operations, now))
    pods = PinnedPods(api, "i", now)
    operands = Operands(api, now, limit=SHORT)
    prove = ProveActivities(api, pods, now, late_work=timedelta(0), patience=timedelta(0))
    return {
        "prove-taint": prove.taint,
        "prove": prove.prove,
        "prove-end": prove.end,
        Step.REBOOT: RebootActivities(api, ways, operations).reboot,
        Step.REPLACE: ReplaceActivities(api, replaces).replace,
        Step.RESET_GPU: ResetGpuActivities(api, pods, operands=operands).reset_gpu,
    }


async def run(kubeconfig, url, request, environment):
    """The step's outcome."""
    async with connect(kubeconfig) as api, httpx.AsyncClient(timeout=10) as http:
        provider = WebhookProvider(ProviderAccess(url), http, pauses=(0.1,))
        return await environment.run(steps(api, provider)[name_of(request)], request)


def name_of(request):
    """A step's own; a proof's operation is called like its activity here."""
    return request.operation if isinstance(request, ProveRequest) else request.step


def child(kubeconfig, url, request):
    """What the forked process does: the step, on a loop of its own."""
    asyncio.run(run(kubeconfig, url, request, ActivityEnvironment()))
