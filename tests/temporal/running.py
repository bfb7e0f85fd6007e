"""An incident on a real server: start it, watch it, read its history."""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities.decide import decide
from activities.search_attributes import at_start
from fleet.closing import Closing
from fleet.opening import Opening
from fleet.order import Said
from policies.document import load
from policies.schema import Policy
from tests.incidents.virtual import an_opening
from tests.temporal.fakes import FakeActivities, Truth, teller
from workflows.node_remediation import NodeRemediation
from workflows.sandbox import RUNNER

REPLAY = Path(__file__).parents[1] / "replay"
LONGEST = 40.0
"""Seconds that an incident may take here before a test says that it is stuck."""

HURRIED = """
budgets: [{scope: cluster, max: 1}]
limits: {step_pause: 1s, look_again: 2s, pause: 20s, cool_down: 1s}
faults:
  uncontained-memory:
    {tolerate: 0s, steps: [reset-gpu, reboot], drain: {deadline: 30s}, probation: 1s}
  nvlink-error: {tolerate: 30s, steps: [reset-gpu], probation: 1s}
  thermal: {tolerate: 0s, probation: 1s}
"""


def hurried() -> Policy:
    return soon_at_a_loss(load(HURRIED, "hurried"))


def soon_at_a_loss(policy: Policy, wait: timedelta = timedelta(seconds=5)) -> Policy:
    """The policy with a wait for facts that none may state: here no watcher takes its time."""
    limits = policy.limits.model_copy(update={"unknown_wait": wait})
    return policy.model_copy(update={"limits": limits})


@dataclass
class Running:
    handle: WorkflowHandle[Any, Closing]
    truth: Truth
    client: Client

    async def until(
        self, done: Callable[[], bool | Awaitable[bool]], seconds: float = LONGEST
    ) -> None:
        async with asyncio.timeout(seconds):
            while True:
                answer = done()
                if answer if isinstance(answer, bool) else await answer:
                    return
                await asyncio.sleep(0.02)

    async def result(self) -> Closing:
        async with asyncio.timeout(LONGEST):
            return await self.handle.result()

    async def stage(self) -> str:
        described = await self.handle.describe()
        return str(next(p.value for p in described.typed_search_attributes if p.key.name == "Step"))

    async def reached(self, stage: str) -> None:
        async def there() -> bool:
            return await self.stage() == stage

        await self.until(there)

    async def card(self) -> str:
        asked = await self.handle.query(
            "__temporal_workflow_metadata", result_type=WorkflowMetadata
        )
        return str(asked.current_details)

    async def order(self, verb: str, actor: str = "ada", reason: str = "because") -> str:
        answer: str = await self.handle.execute_update(verb, Said(actor, reason))
        return answer


async def record(handle: WorkflowHandle[Any, Any], name: str = "") -> None:
    """With GPUMEND_RECORD=1, keep the history of this test, or by a name, for the replay tests."""
    if not os.environ.get("GPUMEND_RECORD"):
        return
    name = name or os.environ["PYTEST_CURRENT_TEST"].split("::")[1].split(" ")[0]
    history = await handle.fetch_history()
    REPLAY.mkdir(exist_ok=True)
    events = without_traces(history.to_json_dict())
    (REPLAY / f"{name}.json").write_text(json.dumps(events, indent=0) + "\n")


def without_traces(value: Any) -> Any:
    """Stack traces name places of one machine, and no replay needs them."""
    if isinstance(value, dict):
        return {key: without_traces(each) for key, each in value.items() if key != "stackTrace"}
    return [without_traces(each) for each in value] if isinstance(value, list) else value


def opened_now() -> Opening:
    opening = an_opening()
    return replace(opening, mark=replace(opening.mark, opened=datetime.now(UTC)))


@asynccontextmanager
async def running(
    client: Client, truth: Truth, policy: Policy | None = None, opening: Opening | None = None
) -> AsyncIterator[Running]:
    queue = f"q-{uuid.uuid4()}"
    fakes = FakeActivities(truth)
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[NodeRemediation],
        activities=[*fakes.steps(), decide],
        workflow_runner=RUNNER,
        max_heartbeat_throttle_interval=timedelta(milliseconds=200),
    )
    lender = Worker(client, task_queue=f"{queue}-budget", activities=fakes.lending())
    crier = Worker(client, task_queue=f"{queue}-tell", activities=[fakes.hear])
    async with worker, lender, crier:
        opening = opening or opened_now()
        handle = await client.start_workflow(
            NodeRemediation.run,
            args=[opening, policy or hurried(), None],
            id=f"{opening.workflow_id}-{uuid.uuid4()}",
            task_queue=queue,
            start_signal="report",
            start_signal_args=[truth.report()],
            search_attributes=at_start(opening, truth.faults[0].name if truth.faults else ""),
        )
        truth.tell = teller(handle)
        yield Running(handle, truth, client)
        await record(handle)
