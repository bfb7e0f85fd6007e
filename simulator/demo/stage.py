"""Sets the stage: every program of a run, in the order in which they need one another."""

import asyncio
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fleet.names import HOLD_EFFECT, PAUSE_ANNOTATION, PROOF_ANNOTATION, UNPROVEN_TAINT
from fleet.proof import Proof, format_proof
from simulator import controllers, machines
from simulator.client import Api
from simulator.controllers.cloud import Instance
from simulator.controllers.config import ControllersConfig, write_controllers
from simulator.controlplane.endpoint import ADMIN, Endpoint, read_tokens
from simulator.controlplane.real import RealControlPlane
from simulator.demo import provider
from simulator.demo.fleet import GPUS, Berth
from simulator.demo.gate import Gate
from simulator.demo.happenings.alarm import MONITOR
from simulator.demo.happenings.persons import OWN_TAINT, PERSONS
from simulator.demo.install import NAMESPACE, POOL_LABEL, Installed, install
from simulator.demo.kills import PROVIDER
from simulator.demo.provider import Owned, ProviderConfig, write_provider
from simulator.demo.receiver import Receiver
from simulator.demo.scenario import Scenario
from simulator.demo.settings import CLUSTER, Settings, write_policy
from simulator.demo.supervisor import Program, Supervisor
from simulator.hardware.machine import Machine
from simulator.kubelet.node import NodeSpec
from simulator.loopback import free_port
from simulator.machines import write_config
from simulator.powered import Config, Place

BOOT_SECONDS = 4.0
SMALL_LEASE, LARGE_LEASE = 4, 8
"""Seconds of a kubelet's Lease: many on few cores are late now and then."""
RACK_LABEL = "topology.kubernetes.io/rack"
CONTROLLERS_USER = "system:kube-controller-manager"
WATCHER_LIMITS = {
    "GPUMEND_WATCHER_REPORT_AT_MOST_EVERY": "1s",
    "GPUMEND_WATCHER_SWEEP_EVERY": "2s",
    "GPUMEND_WATCHER_AGENT_SILENT_AFTER": "30s",
    "GPUMEND_WATCHER_BOOT_GRACE": "40s",
    "GPUMEND_WATCHER_NEWBORN_FOR": "1s",
    "GPUMEND_WATCHER_REPEAT_PENDING_AFTER": "5s",
    "GPUMEND_WATCHER_COMPARE_EVERY": "15s",
    "GPUMEND_WATCHER_PROVE_AGAIN_AFTER": "10s",
    "GPUMEND_WATCHER_PROVE_AGAIN_AT_MOST_AFTER": "20s",
    "GPUMEND_WATCHER_BACKOFF_LIMIT": "2s",
    "GPUMEND_WATCHER_LEASE_DURATION": "6s",
    "GPUMEND_WATCHER_LEASE_RENEW_EVERY": "1s",
    "GPUMEND_WATCHER_LEASE_GIVE_UP_AFTER": "4s",
}
"""Like the policy: the same limits as everywhere, with times short enough to watch."""
NODES_GROUP = "system:nodes"
"""Users of this group are kubelets, for the Node authorizer and for NodeRestriction."""


@dataclass(slots=True)
class Stage:
    """Everything that runs. `machines` by their own names; `ui` is the Temporal UI's address.

    `policy` is the policy file of this run, `journal` what the provider says that it did, `notices`
    what people were told by notification. `gate` is there where somebody is to be killed at a call
    to the provider.
    """

    directory: Path
    endpoint: Endpoint
    temporal: str
    ui: str
    kubeconfig: Path
    policy: Path
    journal: Path
    notices: Path
    machines: Mapping[str, Machine] = field(default_factory=dict)
    gate: Gate | None = None

    def api(self, user: str) -> Api:
        """The API server, as one of its users."""
        return Api(self.endpoint.url, self.endpoint.tokens[user], self.endpoint.tls())


class StageBuilder:
    """Builds one stage with a supervisor and puts it away with `stack`."""

    def __init__(
        self,
        settings: Settings,
        scenario: Scenario,
        directory: Path,
        supervisor: Supervisor,
        stack: AsyncExitStack,
        tell: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._fleet = scenario.fleet
        self._directory = directory
        self._supervisor = supervisor
        self._stack = stack
        self._tell = tell

    async def build(self) -> Stage:
        """Start everything; raise NotStarted with the last words of what did not."""
        endpoint, (temporal, ui) = await asyncio.gather(self._api(), self._temporal())
        self._tell(f"Temporal UI {ui}")
        self._tell(f"policy {self._directory / 'policy.yaml'}")
        stage = self._set(endpoint, temporal, ui)
        async with stage.api(ADMIN) as admin:
            real, loads = self._settings.real, self._fleet.loads
            watched = [each.node for each in self._fleet.berths if each.watched]
            installed = await install(admin, loads, watched, node_rights=not real, ca=real)
        receiver = await self._stack.enter_async_context(Receiver(stage.notices))
        told = {**await self._provider(stage), "GPUMEND_NOTIFY_URL": receiver.url}
        await asyncio.gather(
            self._start_engine(stage, "watcher", installed, told),
            self._start_engine(stage, "worker", installed, told),
            self._start_fleet(stage, installed),
        )
        return stage

    def _set(self, endpoint: Endpoint, temporal: str, ui: str) -> Stage:
        """What lies there before anything of the fleet runs."""
        kubeconfig = endpoint.write_kubeconfig(self._directory / "kubeconfig", kubectl=True)
        budgets = self._settings.budgets(self._fleet.budgets)
        policy = write_policy(self._directory / "policy.yaml", budgets, self._settings.policy)
        journal, notices = (self._directory / f"{name}.jsonl" for name in ("provider", "notices"))
        machines = {
            each.machine: Machine.create(
                self._directory / "machines" / each.machine, each.machine, GPUS, on=not each.spare
            )
            for each in self._fleet.berths
        }
        told = policy, journal, notices
        return Stage(self._directory, endpoint, temporal, ui, kubeconfig, *told, machines)

    async def _api(self) -> Endpoint:
        groups = {f"system:node:{each.node}": NODES_GROUP for each in self._fleet.berths}
        groups |= dict.fromkeys((CONTROLLERS_USER, MONITOR, *PERSONS), "system:masters")
        if self._settings.real:
            plane = RealControlPlane(self._directory / "api", users=groups)
            await self._stack.enter_async_context(plane)
            return plane.endpoint
        directory = self._directory / "api"
        directory.mkdir()
        tokens = directory / "tokens.csv"
        tokens.touch(mode=0o600)
        users = {ADMIN: "system:masters", **groups}
        lines = (f'{secrets.token_hex(16)},{user},{user},"{users[user]}"\n' for user in users)
        tokens.write_text("".join(lines))
        port = free_port()
        argv = [sys.executable, "-m", "simulator.apiserver", "--dir", str(directory)]
        argv += ["--port", str(port), "--tokens", str(tokens)]
        await self._supervisor.start(Program("api", argv, "ready url="))
        audit = directory / "audit.log"
        return Endpoint(f"http://127.0.0.1:{port}", None, read_tokens(tokens), audit)

    async def _temporal(self) -> tuple[str, str]:
        port, ui = free_port(), free_port()
        program = Path(sys.executable).with_name("temporal")
        argv = [str(program), "server", "start-dev", "--port", str(port), "--ui-port", str(ui)]
        argv += ["--namespace", NAMESPACE, "--log-level", "error"]
        if self._settings.kill or self._settings.without:
            argv += ["--db-filename", str(self._directory / "temporal.db")]
        for name, kind in search_attributes().items():
            argv += ["--search-attribute", f"{name}={kind}"]
        await self._supervisor.start(Program("temporal", argv, "Temporal UI:"))
        return f"127.0.0.1:{port}", f"http://127.0.0.1:{ui}"

    async def _provider(self, stage: Stage) -> Mapping[str, str]:
        """Start the provider; returns the environment that tells the engine where it is."""
        token = secrets.token_hex(16)
        machines = tuple(
            Owned(
                each.node,
                each.provider_id,
                str(stage.machines[each.machine].base),
                spare=each.spare and each.machine == each.node and not each.joins,
                hidden=each.spare and (each.joins or each.machine != each.node),
            )
            for each in self._fleet.berths
        )
        config = self._directory / "provider.json"
        directory = str(self._directory / "provider")
        port = free_port()
        write_provider(config, ProviderConfig(directory, str(stage.journal), port, token, machines))
        argv = [sys.executable, "-m", "simulator.demo.provider", str(config)]
        await self._supervisor.start(Program("provider", argv, provider.READY_LINE))
        url = await self._gated(stage, f"http://127.0.0.1:{port}")
        return {"GPUMEND_PROVIDER_URL": url, "GPUMEND_PROVIDER_TOKEN": token}

    async def _gated(self, stage: Stage, url: str) -> str:
        kill = self._settings.kill
        if kill is None or kill.call.account != PROVIDER:
            return url
        gate = Gate(url, kill.call.verb, kill.after)
        stage.gate = await self._stack.enter_async_context(gate)
        return gate.url

    async def _start_fleet(self, stage: Stage, installed: Installed) -> None:
        """Machines with their kubelets, then the controllers, which start the agents there."""
        ca = str(stage.endpoint.ca or "")
        lease = LARGE_LEASE if self._settings.large else SMALL_LEASE
        places = tuple(
            Place(
                stage.machines[each.machine].base,
                _node(each, lease),
                stage.endpoint.tokens[f"system:node:{each.node}"],
            )
            for each in self._fleet.berths
        )
        config = self._directory / "machines.json"
        write_config(config, Config(stage.endpoint.url, ca, BOOT_SECONDS, places))
        argv = [sys.executable, "-m", "simulator.machines", str(config)]
        await self._supervisor.start(Program("machines", argv, machines.READY_LINE))
        config = self._directory / "controllers.json"
        token = stage.endpoint.tokens[CONTROLLERS_USER]
        instances = tuple(_instance(stage, each) for each in self._fleet.berths)
        wanted = ControllersConfig(
            stage.endpoint.url, ca, token, installed.workloads, (installed.agents,), instances
        )
        write_controllers(config, wanted)
        argv = [sys.executable, "-m", "simulator.controllers", str(config)]
        await self._supervisor.start(Program("controllers", argv, controllers.READY_LINE))

    async def _start_engine(
        self, stage: Stage, name: str, installed: Installed, more: Mapping[str, str]
    ) -> None:
        role = "watcher" if name == "watcher" else "incidents"
        config = self._directory / f"kubeconfig-{name}"
        stage.endpoint.write_kubeconfig(config, user=ADMIN, token=installed.tokens[name])
        sabotage = self._settings.sabotage
        module = self._settings.worker if name == "worker" else ("worker",)
        module = ("simulator.demo.saboteur", sabotage) if sabotage else module
        argv = [sys.executable, "-m", *module, "--role", role, "--cluster", CLUSTER]
        argv += ["--policy", str(stage.policy), "--grace", "3"]
        env = {
            "KUBECONFIG": str(config),
            "TEMPORAL_ADDRESS": stage.temporal,
            "TEMPORAL_NAMESPACE": NAMESPACE,
            **WATCHER_LIMITS,
            **more,
        }
        await self._supervisor.start(Program(name, argv, "what=ready", env))


def _node(berth: Berth, lease: int) -> NodeSpec:
    labels = {POOL_LABEL: berth.pool, "node.kubernetes.io/instance-type": "p5.48xlarge"}
    born = _taints(berth), _annotations(berth)
    return NodeSpec(berth.node, labels, berth.provider_id, lease, berth.machine, *born)


def _taints(berth: Berth) -> tuple[dict[str, str], ...]:
    """What its Node is born with: those who make nodes put the startup taint on new ones."""
    own = {"key": OWN_TAINT, "value": "vision", "effect": HOLD_EFFECT}
    startup = {"key": UNPROVEN_TAINT, "effect": HOLD_EFFECT}
    return (*((own,) if berth.kept else ()), *((startup,) if berth.proven is None else ()))


def _annotations(berth: Berth) -> dict[str, str]:
    """The same of one that is older than the run: when it was proven."""
    if berth.proven is None:
        return {}
    proof = Proof(proven=datetime.now(UTC) - berth.proven)
    pause = {PAUSE_ANNOTATION: "kept for a demonstration"} if berth.kept else {}
    return {PROOF_ANNOTATION: format_proof(proof), **pause}


def _instance(stage: Stage, berth: Berth) -> Instance:
    base = str(stage.machines[berth.machine].base)
    return Instance(berth.provider_id, base, {RACK_LABEL: berth.rack}, berth.forgetful)


def search_attributes() -> dict[str, str]:
    """What the engine writes on its runs, by Temporal's names of types."""
    keywords = ("Cluster", "Node", "Machine", "Pool", "Rack", "Fault", "Step")
    kinds = dict.fromkeys(keywords, "Keyword")
    return {**kinds, "Steps": "KeywordList", "DueAt": "Datetime"}
