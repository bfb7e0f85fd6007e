import asyncio
import uuid
from dataclasses import replace

import pytest

from activities.adapters.temporal import TemporalIncidents
from activities.adapters.temporal_checks import NotReady, check_retention, check_search_attributes
from activities.adapters.temporal_memory import TemporalMemory
from activities.search_attributes import TYPES
from fleet.closing import Closing
from fleet.decision import Decision
from fleet.incident import End, Incident
from fleet.outcome import Outcome, OutcomeKind, PastAttempt
from fleet.step import Step
from policies.carried import Carried
from policies.decide import decide
from policies.document import load
from tests.incidents.scenario import build
from tests.incidents.virtual import START, a_fault, play
from tests.temporal.fakes import Truth
from tests.temporal.running import LONGEST, hurried, opened_now, running

pytestmark = pytest.mark.asyncio(loop_scope="session")
MEMORY = a_fault("gpu:3", "uncontained-memory")


def elsewhere():
    """An opening of a node that no other test uses."""
    opening = opened_now()
    return replace(opening, node=replace(opening.node, name=f"n-{uuid.uuid4()}"))


async def seen(found, seconds=LONGEST):
    """Wait for the list of workflows, which lags behind."""
    async with asyncio.timeout(seconds):
        while not await found():  # noqa: ASYNC110  # a server says nothing when its list catches up
            await asyncio.sleep(0.1)


async def test_starting_twice_opens_one_incident_and_delivers_both_reports(server):
    incidents, opening = TemporalIncidents(lambda: server.client, hurried), elsewhere()
    report = Truth((MEMORY,)).report()
    await incidents.start(opening, report)
    await incidents.start(opening, report)
    handle = server.client.get_workflow_handle(opening.workflow_id)
    history = await handle.fetch_history()
    signals = [e for e in history.events if "signaled" in str(e.WhichOneof("attributes"))]
    assert len(signals) == 2
    assert await incidents.is_open(opening.workflow_id)

    async def listed():
        return opening.workflow_id in await incidents.open_ids()

    await seen(listed)
    described = await handle.describe()
    assert await described.memo_value("mark") == opening.mark.id
    await handle.terminate()


async def test_what_is_told_to_a_closed_incident_is_said_to_be_undelivered(server):
    incidents, opening = TemporalIncidents(lambda: server.client, hurried), elsewhere()
    assert not await incidents.is_open(opening.workflow_id)
    assert not await incidents.report(opening.workflow_id, Truth((MEMORY,)).report())
    assert not await incidents.node_gone(opening.workflow_id, "u1")
    assert not await incidents.hold_removed(opening.workflow_id, "u1", True)
    assert not await incidents.grant(opening.workflow_id)


async def test_attempts_are_remembered_from_results_and_from_runs_ended_from_outside(server):
    memory = TemporalMemory(server.client)
    truth = Truth((MEMORY,), heals=(Step.RESET_GPU,))
    async with running(server.client, truth) as run:
        await run.result()
        workflow_id = run.handle.id

        async def remembered():
            return len(await memory.past_attempts(workflow_id)) == 1

        await seen(remembered)
    stopped = Truth((MEMORY,))
    stopped.scripts[Step.RESET_GPU].append(Outcome(OutcomeKind.PERMANENT, "reset-failed"))
    async with running(server.client, stopped) as run:
        await run.until(lambda: Step.REBOOT.value in stopped.steps())
        await run.handle.terminate()
        workflow_id = run.handle.id

        async def read_from_history():
            past = await memory.past_attempts(workflow_id)
            return [each.step for each in past][:1] == [Step.RESET_GPU]

        await seen(read_from_history)
    past = await memory.past_attempts(workflow_id)
    assert past[0].parts == ("gpu:3",)


async def test_a_namespace_with_our_attributes_passes(server):
    await check_search_attributes(server.client)


async def test_a_missing_attribute_is_refused_with_the_command_that_mends_it(server, monkeypatch):
    monkeypatch.setitem(TYPES, "Nowhere", TYPES["Node"])
    with pytest.raises(NotReady, match=r"create --name Nowhere --type Keyword --namespace default"):
        await check_search_attributes(server.client)


async def test_a_retention_shorter_than_the_memory_of_attempts_is_refused(server):
    text = "faults:\n  gpu-lost: {steps: [reboot], attempts: {window: %s}}"
    await check_retention(server.client, load(text % "1h", "short"))
    with pytest.raises(NotReady, match=r"namespace update --retention 2400h"):
        await check_retention(server.client, load(text % "100d", "long"))


async def test_everything_that_crosses_to_temporal_comes_back_equal(server):
    """Mappings, tuples, durations, enums, new types and unions through the pydantic converter."""
    world = play(build("policy short\nfault gpu:3 uncontained-memory\nat 9h resume ada why"))
    other = play(build("policy short\nfault nvlink:3/1 nvlink-error\nat 1m pause ada why"))
    assert world.incident
    incident: Incident = world.incident
    decisions = (*world.decisions, *other.decisions)
    past = (PastAttempt(Step.REBOOT, START),)
    carried = Carried(incident, (world.report(),), ("hold",))
    assert len({type(each) for each in decisions}) == 4
    for value, kind in (
        (incident, Incident),
        (incident.opening, type(incident.opening)),
        (world.policy, type(world.policy)),
        (carried, Carried),
        (Closing(End.REPAIRED, ("x",), past), Closing),
        *((each.request, type(each.request)) for each in world.performed),
    ):
        assert await there_and_back(server, value, kind) == value
    for each in decisions:
        assert await there_and_back(server, each, Decision) == each
    assert decide(world.policy, incident, world.now) == decide(
        await there_and_back(server, world.policy, type(world.policy)),
        await there_and_back(server, incident, Incident),
        world.now,
    )


async def there_and_back(server, value, kind):
    converter = server.client.data_converter
    return (await converter.decode(await converter.encode([value]), [kind]))[0]
