"""Makes the incident that `incident_cost` counts: a machine whose fault a reset does not heal and a
reboot does.

Everything is the demo's, with one node: API server, machine, kubelet, controllers, agent, watcher,
Temporal and policy, but for the shipped `look_again`. Only the worker's port to Kubernetes writes
down what it is asked for.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.adapters.payloads import DATA_CONVERTER
from console.bench.incident_cost import Cost, cost_of
from fleet import names
from fleet.closing import Closing
from fleet.incident import End
from fleet.mark import MarkState
from fleet.step import Step
from simulator.client import Api
from simulator.controlplane.endpoint import ADMIN
from simulator.demo.fleet import GPUS, TRAINING, Berth, Fleet, Load
from simulator.demo.install import NAMESPACE
from simulator.demo.scenario import Scenario
from simulator.demo.settings import CLUSTER, POLICY, Settings
from simulator.demo.stage import Stage, StageBuilder
from simulator.demo.supervisor import Supervisor
from simulator.hardware.nature import STUBBORN_MEMORY
from simulator.observer import sight
from simulator.observer.sight import Json

LIMIT = 240.0
"""Seconds after which an incident is given up, from when its stage is set."""
NODE = "node-1"
SHORT_LOOK = re.compile(r"^  look_again: .*\n", re.MULTILINE)
"""In the demo's policy, which is to be watched: a fault is confirmed once more after a drain that
took longer. In a real fleet and here the shipped 5 minutes hold."""
LADDER = (Step.RESET_GPU, Step.REBOOT)
FLEET = Fleet(
    (Berth(NODE, NODE, "rack-1", TRAINING),),
    (Load("train", 1, GPUS // 2), Load("serve", 1, GPUS // 2)),
    {"cluster": 1, "rack": 1},
)
"""One pod of each of two workloads, as a node of the demo has them."""


class WentOtherwise(Exception):
    """The incident was another one than that which is to be measured."""


async def measure() -> Cost:
    """Run one incident to its end and count; raise WentOtherwise, with last words, where it did."""
    with tempfile.TemporaryDirectory(prefix="gpumend-bench-") as place:
        journal = Path(place) / "calls.jsonl"
        async with _stage(Path(place), journal) as (stage, supervisor):
            try:
                async with asyncio.timeout(LIMIT):
                    return await _incident(stage, journal)
            except (TimeoutError, WentOtherwise) as problem:
                why = str(problem) or f"not over after {LIMIT:.0f} s"
                raise WentOtherwise(f"{why}\n{supervisor.tails()}") from problem


@asynccontextmanager
async def _stage(place: Path, journal: Path) -> AsyncIterator[tuple[Stage, Supervisor]]:
    worker = ("console.bench.incident_worker", str(journal))
    settings = Settings(nodes=1, worker=worker, policy=_policy(place))
    scenario = Scenario(settings.seed, FLEET, (), 0.0)
    async with AsyncExitStack() as stack:
        supervisor = Supervisor(place / "logs", _tell)
        await stack.enter_async_context(supervisor)
        builder = StageBuilder(settings, scenario, place, supervisor, stack, _tell)
        yield await builder.build(), supervisor


def _policy(place: Path) -> Path:
    """The demo's policy with the shipped `look_again`."""
    path = place / "policy-of-the-incident.yaml"
    text, found = SHORT_LOOK.subn("", POLICY.read_text(encoding="utf-8"))
    assert found == 1, f"{POLICY} has {found} lines of look_again, not the one to leave out"
    path.write_text(text, encoding="utf-8")
    return path


async def _incident(stage: Stage, journal: Path) -> Cost:
    """Break the node when its agent has said that it is well; wait until it is in service again."""
    async with stage.api(ADMIN) as admin:
        await _until(admin, _spoken_for)
        stage.machines[NODE].strike(0, STUBBORN_MEMORY)
        mark = sight.mark(await _until(admin, _owned)) or {}
    client = await Client.connect(
        stage.temporal, namespace=NAMESPACE, data_converter=DATA_CONVERTER
    )
    name = names.incident_workflow_id(CLUSTER, NODE, str(mark["machine"]))
    return await _cost(client.get_workflow_handle(name, result_type=Closing), journal)


async def _until(admin: Api, so: Callable[[Json], bool]) -> Json:
    """The node as it is when something is so."""
    async for kind, thing in admin.follow("/api/v1/nodes"):
        for node in thing["items"] if kind == "SYNC" else (thing,):
            if so(node):
                return dict(node)
    raise AssertionError("nodes are followed for ever")


def _spoken_for(node: Json) -> bool:
    return any(each.startswith(sight.OURS) for each in sight.conditions(node))


def _owned(node: Json) -> bool:
    return (sight.mark(node) or {}).get("state") == MarkState.OWNED


async def _cost(handle: WorkflowHandle[Any, Closing], journal: Path) -> Cost:
    closing = await handle.result()
    repairs = tuple(each.step for each in closing.repairs)
    if (closing.end, repairs) != (End.REPAIRED, LADDER):
        raise WentOtherwise(f"{handle.id} ended as {closing.end} by {' and '.join(repairs)}")
    history = await handle.fetch_history()
    with journal.open(encoding="utf-8") as lines:
        return cost_of(history.events, lines, handle.id)


def _tell(sentence: str) -> None:
    """What happens to the stage's programs: stdout is for the figures."""
    print(sentence, file=sys.stderr)
