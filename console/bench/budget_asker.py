"""One of the processes of `gpumend bench budget`: a worker of the budget, and many who ask.

Run as `python -m console.bench.budget_asker ADDRESS CLUSTER FIRST COUNT MOST`. It says `ready`, and
then answers each line of stdin (`floor`, `ask`, `give`) with one line of JSON. `floor` sends the
same batches to a workflow that does nothing with them.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from activities.adapters.payloads import DATA_CONVERTER
from activities.adapters.temporal_budget import TemporalBudget
from activities.coalescer import Coalescer
from console.collecting import rarely
from fleet import names
from workflows.disruption_budget import DisruptionBudget
from workflows.sandbox import RUNNER, keep_bytecode

with workflow.unsafe.imports_passed_through():
    from policies.exchange import Answer, Batch, SentAnswer, SentBatch, send
    from policies.ledger import Ask, Claim

FLOOR = "bench-floor"
NODES_A_RACK, NODES_A_JOB, NODES_A_POOL = 16, 64, 2_500
MAXIMA = {"cluster": 500, "pool": 200, "rack": 1, "job": 2}


@workflow.defn(name=FLOOR)
class Floor:
    """Takes batches and does nothing: what the calls alone cost."""

    @workflow.run
    async def run(self) -> None:
        """Until it is terminated."""
        await workflow.wait_condition(lambda: False)

    @workflow.update(name=names.UPDATE_EXCHANGE)
    def exchange(self, batch: SentBatch) -> SentAnswer:
        """Answer nothing."""
        return SentAnswer((), (), ())


@activity.defn(name="grant")
async def grant(incidents: list[str]) -> list[str]:
    """Nobody is there to be told; all are open."""
    return []


@activity.defn(name="look-at-leases")
async def look(leases: dict[str, str]) -> dict[str, str]:
    """Everybody is at work."""
    return dict.fromkeys(leases, "open")


def ask_of(number: int, cluster: str) -> Ask:
    """An ask as a large fleet makes it: long names, four scopes, several urgencies."""
    node = f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.eu-central-1.internal"
    keys = {
        "cluster": cluster,
        "pool": f"gpu-{number // NODES_A_POOL}",
        "rack": f"rack-{number // NODES_A_RACK}",
        "job": f"team/train-{number // NODES_A_JOB}",
    }
    claims = tuple(Claim(f"{scope}/{keys[scope]}", most) for scope, most in MAXIMA.items())
    incident = f"node/{cluster}/{node}/{number:08x}"
    return Ask(incident, node, claims, datetime.now(UTC), (0, 600, 86_400)[number % 3])


async def main(address: str, cluster: str, first: int, count: int, most: int) -> None:
    """Serve the budget's queue, and do as stdin says; `most` are the asks in one update."""
    client = await Client.connect(address, data_converter=DATA_CONVERTER)
    coalescer = Coalescer(TemporalBudget(lambda: client, cluster).exchange, most)
    asks = [ask_of(number, cluster) for number in range(first, first + count)]
    held: list[str] = []

    async def ask() -> int:
        answers = await asyncio.gather(*(coalescer.ask(each) for each in asks))
        pairs = zip(asks, answers, strict=True)
        held[:] = [each.incident for each, answer in pairs if not answer]
        return len(held)

    async def give() -> int:
        await asyncio.gather(*(coalescer.give(each) for each in held))
        return len(held)

    async def floor() -> int:
        bare = client.get_workflow_handle(f"{FLOOR}/{cluster}")

        async def only_send(batch: Batch) -> Answer:
            await bare.execute_update(names.UPDATE_EXCHANGE, send(batch), result_type=SentAnswer)
            return Answer((), {})

        bottom = Coalescer(only_send, most)
        await asyncio.gather(*(bottom.ask(each) for each in asks))
        return 0

    worker = Worker(
        client,
        task_queue=names.BUDGET_TASK_QUEUE,
        workflows=[DisruptionBudget, Floor],
        activities=[grant, look],
        workflow_runner=RUNNER,
    )
    async with worker:
        await _serve({"ask": ask, "give": give, "floor": floor})


async def _serve(commands: dict[str, Callable[[], Awaitable[int]]]) -> None:
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        began = time.monotonic()
        count = await commands[line]()
        ended = time.monotonic()
        print(json.dumps({"began": began, "ended": ended, "count": count}), flush=True)


if __name__ == "__main__":
    rarely()
    keep_bytecode()
    asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])))
