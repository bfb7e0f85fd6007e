"""The whole way of a fault that shows only between nodes: watcher, workflows, activities and node
steps are the real ones, on simulated machines that really meet over loopback; the kubelet's and the
agent's loops are not.
"""

import argparse
import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from console import node_step
from fleet import names
from fleet.fault import FaultName
from fleet.proof import Why
from fleet.step import format_report
from policies.document import load
from policies.prove_terms import ProveTerms
from probes.agent.core import Core
from probes.agent.memory import load as remember
from probes.agent.memory import save
from probes.machine import Machine
from probes.node_step.premise import report
from probes.node_step.verify import verify
from probes.records import read_records
from simulator.hardware.machine import Machine as Simulated
from simulator.hardware.nature import Ail
from simulator.kubelet.node import address_of
from tests.agent.test_conclusions import read_on
from tests.cluster import Cluster, cluster_in, conditions, stopped
from tests.proving.nodes import serving
from tests.temporal.test_found_and_proven import LIMIT, _knows, engine, until

pytestmark = pytest.mark.asyncio(loop_scope="session")
NODES, BAD = ("n1", "n2", "n3"), "n2"
POLICY = """
budgets: [{scope: cluster, max: 3}]
faults: {nic-degraded: {steps: []}}
proving: {checks: [pci], pairs: {add_up: 10s}}
"""


class Machines:
    """Kubelet and agent of all machines, as far as anybody here waits for them."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._cluster = cluster
        self._runs: set[asyncio.Task[None]] = set()
        self.simulated = {name: Simulated.create(folder / name, name, gpus=1) for name in NODES}

    async def join(self) -> None:
        for name, machine in self.simulated.items():
            about = serving(name=name, provider_id=f"c:///{name}", gpus=1, boot=machine.boot_id)
            await self._cluster.add_node(**about)
            address = {"type": "InternalIP", "address": address_of(name)}
            await self._cluster.change_node({"status": {"addresses": [address]}}, name)
            await self.speak(name)

    def begin(self, pod: dict[str, Any]) -> None:
        """Both Pods of a pair run at once, each in a thread."""
        run = asyncio.create_task(self._run(pod))
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)

    async def _run(self, pod: dict[str, Any]) -> None:
        name = pod["spec"]["nodeName"]
        message = await asyncio.to_thread(self._act, name, pod["spec"]["containers"][0]["command"])
        await self.speak(name)
        await self._cluster.set_status(pod, stopped(message))

    def _act(self, name: str, command: list[str]) -> str:
        parser = argparse.ArgumentParser()
        node_step.configure(parser)
        request, here = node_step.request_of(parser.parse_args(command[2:])), self._here(name)
        ending = verify(here, request, lambda: datetime.now(UTC))
        return format_report(report(request, here, ending))

    async def speak(self, name: str) -> None:
        """What the agent publishes, once it has read what the steps left."""
        here, boot = self._here(name), self.simulated[name].boot_id
        core = Core(here, remember(here.state, boot, name))
        read_on(core)
        core.repaired(read_records(here.state, boot))
        save(core.memory, here.state, name)
        said = [
            {"type": kind, "status": each.status, "reason": each.reason, "message": each.message}
            for kind, each in core.conditions().items()
        ]
        status = {"status": {"conditions": [*conditions(boot=boot)[:1], *said]}}
        answer = await self._cluster.raw.patch(f"/api/v1/nodes/{name}/status", status)
        assert answer.is_success, answer.text
        await self._cluster.renew_lease(name)

    def _here(self, name: str) -> Machine:
        machine = self.simulated[name]
        return Machine(machine.root, machine.root / "var/lib/gpumend")


async def test_a_machine_whose_network_is_bad_is_found_by_two_others_and_held(
    server, tmp_path: Path
):
    policy, client = load(POLICY, "p"), server.client
    terms = ProveTerms.of(policy)
    assert terms.proving.pairs
    pairs = terms.proving.pairs.model_copy(update={"add_up": timedelta(seconds=2)})
    hurried = terms.model_copy(
        update={"proving": terms.proving.model_copy(update={"pairs": pairs})}
    )
    async with cluster_in(tmp_path) as cluster, asyncio.timeout(LIMIT):
        machines = Machines(tmp_path / "machines", cluster)
        machines.simulated[BAD].ail(Ail.BAD_NETWORK)
        cluster.on_step = machines.begin
        await machines.join()
        async with engine(client, cluster, policy):
            await until(lambda: _knows(client))
            trial = await client.start_workflow(
                names.PAIRS_WORKFLOW,
                args=["c1", hurried],
                id="pairs/c1-now",
                task_queue=names.TASK_QUEUE,
            )
            assert (await trial.result())["ends"] == {"found": 1, "proven": 2}

            async def held() -> bool:
                return (await cluster.node(BAD)).mark is not None

            await until(held)
        states = {name: await cluster.node(name) for name in NODES}
        odd = states.pop(BAD)
        assert (odd.unproven and odd.unproven.value, bool(odd.hold)) == (Why.ODD, True)
        said = {each.type: each for each in odd.conditions}["gpumend.io/Network"]
        assert f"part=host fault={FaultName.NIC_DEGRADED} code=pairs:hung" in said.message
        for well in states.values():
            assert (well.unproven, well.mark, well.hold) == (None, None, None)
            assert well.proof.paired
            assert not well.proof.proven
        operations = await cluster.pods("gpumend")
        assert len([each for each in operations if each.startswith("step-prove-pair-")]) == 6
