"""How every activity ends: noes are outcomes, and only what may work later is raised."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError

from activities.adapters.kubernetes import KubernetesApi
from activities.conduct import conduct
from activities.endings import REFUSED, succeeded
from activities.waiting import list_all, wait_until
from fleet.errors import Ambiguous, Conflict, Expired, Refused, TooManyRequests, Transient
from fleet.outcome import OutcomeKind
from fleet.ports import Page
from simulator.apiserver.injection import Fault as Trouble
from tests.cluster import now, pod_manifest


def ending(temporal, problem):
    async def work(progress):
        progress.say("half way")
        if problem:
            raise problem
        return succeeded("done")

    return temporal.env.run(conduct, work)


@pytest.mark.parametrize(
    ("problem", "delay"),
    [
        (Transient("away"), None),
        (Transient("away", 3.0), timedelta(seconds=3)),
        (Ambiguous("lost"), None),
        (TooManyRequests(429, "", "busy", (), 7.0), timedelta(seconds=7)),
        (Conflict(409, "Conflict", "changed"), None),
        (Expired(410, "Expired", "too old"), None),
    ],
)
async def test_what_may_work_later_is_repeated_by_temporal_after_the_servers_hint(
    temporal, problem, delay
):
    with pytest.raises(ApplicationError) as raised:
        await ending(temporal, problem)
    assert raised.value.next_retry_delay == delay
    assert not raised.value.non_retryable
    assert raised.value.type == type(problem).__name__


async def test_a_refusal_is_an_outcome_with_the_servers_words(temporal):
    outcome = await ending(temporal, Refused(403, "Forbidden", "no " * 10_000))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, REFUSED)
    assert outcome.detail.startswith("403 Forbidden")
    assert len(outcome.detail) <= 2_000


async def test_a_mistake_of_ours_is_not_dressed_up_as_an_outcome(temporal):
    with pytest.raises(ZeroDivisionError):
        await ending(temporal, ZeroDivisionError())


async def test_progress_goes_with_the_heartbeats(temporal):
    await ending(temporal, None)
    assert "half way" in temporal.said


PODS = "/api/v1/namespaces/default/pods"


async def waited(cluster, judge, until=timedelta(seconds=20)):
    return await wait_until(cluster.api, PODS, {}, judge, until=now() + until, now=now)


async def test_a_wait_ends_when_its_time_is_over_or_was_over_before(quiet_cluster):
    assert await waited(quiet_cluster, lambda _: None, timedelta(milliseconds=100)) is None
    assert await waited(quiet_cluster, lambda _: True, timedelta(seconds=-1)) is None


async def test_a_wait_outlives_an_api_server_that_is_away_and_a_version_that_is_too_old(
    quiet_cluster,
):
    quiet_cluster.server.faults.order(Trouble(verb="list", path="/default/pods", code=503))
    watch = quiet_cluster.api.watch

    def expired(*arguments, **options):
        quiet_cluster.api.watch = watch
        raise Expired(410, "Expired", "too old")

    quiet_cluster.api.watch = expired
    judged = 0

    def judge(pods):
        nonlocal judged
        judged += 1
        return True if judged == 2 else None

    assert await waited(quiet_cluster, judge) is True


async def test_a_wait_follows_what_is_added_changed_and_deleted(cluster):
    seen = []

    def judge(pods):
        seen.append({each["metadata"]["name"] for each in pods})
        return True if seen[-1] == set() and len(seen) > 2 else None

    waiting = asyncio.create_task(waited(cluster, judge))
    await cluster.add_pod(pod_manifest("a"))
    await cluster.raw.delete(f"{PODS}/a")
    assert await waiting is True
    assert {"a"} in seen


async def test_a_watch_that_the_server_ends_goes_on_without_a_list(quiet_cluster):
    """A wait lasts for hours; each minute the server ends its watch."""
    lists, watch, page = [], quiet_cluster.api.watch, quiet_cluster.api.page

    async def counted(path, **options):
        lists.append(path)
        return await page(path, **options)

    @asynccontextmanager
    async def ended(path, *, resource_version, query=None):
        async def nothing():
            await quiet_cluster.add_pod(pod_manifest("a"))
            quiet_cluster.api.watch = watch
            if quiet_cluster is None:
                yield  # a generator, which ends at once

        yield nothing()

    quiet_cluster.api.watch, quiet_cluster.api.page = ended, counted
    assert await waited(quiet_cluster, lambda pods: True if pods else None) is True
    assert len(lists) == 1


async def test_a_refusal_ends_a_wait(quiet_cluster):
    trouble = Trouble(verb="list", path="/default/pods", code=403, reason="Forbidden")
    quiet_cluster.server.faults.order(trouble)
    with pytest.raises(Refused):
        await waited(quiet_cluster, lambda _: None)


async def test_a_list_without_end_is_given_up():
    class Endless(KubernetesApi):
        def __init__(self):
            pass

        async def page(self, path, *, query=None, limit=500, token=""):
            return Page((), "1", "more")

    with pytest.raises(Transient, match="pages"):
        await list_all(Endless(), PODS)
