"""Sets the stage: every program of a run, in the order in which they need one another."""

import asyncio
import secrets
import ssl
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from simulator import controllers, machines
from simulator.client import Api
from simulator.controllers.cloud import Instance
from simulator.controllers.config import ControllersConfig, write_controllers
from simulator.controlplane.endpoint import ADMIN, Endpoint, read_tokens
from simulator.controlplane.real import RealControlPlane
from simulator.demo.install import NAMESPACE, Installed, install
from simulator.demo.scenario import GPUS, Scenario
from simulator.demo.settings import CLUSTER, POLICY, Settings
from simulator.demo.supervisor import Program, Supervisor
from simulator.hardware.machine import Machine
from simulator.kubelet.node import NodeSpec
from simulator.loopback import free_port
from simulator.machines import write_config
from simulator.powered import Config, Place

BOOT_SECONDS = 4.0
RACK_LABEL = "topology.kubernetes.io/rack"
CONTROLLERS_USER = "system:kube-controller-manager"
WATCHER_LIMITS = {
    "GPUMEND_WATCHER_REPORT_AT_MOST_EVERY": "1s",
    "GPUMEND_WATCHER_SWEEP_EVERY": "2s",
    "GPUMEND_WATCHER_REPEAT_PENDING_AFTER": "5s",
    "GPUMEND_WATCHER_COMPARE_EVERY": "15s",
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
    """Everything that runs. `machines` by node name; `ui` is the Temporal UI's address."""

    directory: Path
    endpoint: Endpoint
    temporal: str
    ui: str
    kubeconfig: Path
    machines: Mapping[str, Machine] = field(default_factory=dict)


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
        self._scenario = scenario
        self._directory = directory
        self._supervisor = supervisor
        self._stack = stack
        self._tell = tell

    async def build(self) -> Stage:
        """Start everything; raise NotStarted with the last words of what did not."""
        endpoint, (temporal, ui) = await asyncio.gather(self._api(), self._temporal())
        self._tell(f"Temporal UI {ui}")
        kubeconfig = endpoint.write_kubeconfig(self._directory / "kubeconfig", kubectl=True)
        stage = Stage(self._directory, endpoint, temporal, ui, kubeconfig)
        stage.machines = {
            name: Machine.create(self._directory / "machines" / name, name, GPUS)
            for name in self._scenario.nodes
        }
        async with self._admin(endpoint) as admin:
            real = self._settings.real
            installed = await install(admin, len(stage.machines), node_rights=not real, ca=real)
        await asyncio.gather(
            self._supervisor.start(self._engine(stage, "watcher", installed.tokens["watcher"])),
            self._supervisor.start(self._engine(stage, "worker", installed.tokens["worker"])),
            self._fleet(stage, installed),
        )
        return stage

    def _admin(self, endpoint: Endpoint) -> Api:
        return Api(endpoint.url, endpoint.tokens[ADMIN], _tls(endpoint))

    async def _api(self) -> Endpoint:
        groups = {f"system:node:{name}": NODES_GROUP for name in self._scenario.nodes}
        groups[CONTROLLERS_USER] = "system:masters"
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

    async def _fleet(self, stage: Stage, installed: Installed) -> None:
        """Machines with their kubelets, then the controllers, which start the agents there."""
        ca = str(stage.endpoint.ca or "")
        places = tuple(
            Place(machine.base, self._node(name), stage.endpoint.tokens[f"system:node:{name}"])
            for name, machine in stage.machines.items()
        )
        config = self._directory / "machines.json"
        write_config(config, Config(stage.endpoint.url, ca, BOOT_SECONDS, places))
        argv = [sys.executable, "-m", "simulator.machines", str(config)]
        await self._supervisor.start(Program("machines", argv, machines.READY_LINE))
        config = self._directory / "controllers.json"
        token = stage.endpoint.tokens[CONTROLLERS_USER]
        daemons = (installed.agents,)
        instances = tuple(self._instance(stage, name) for name in stage.machines)
        wanted = ControllersConfig(
            stage.endpoint.url, ca, token, installed.workloads, daemons, instances
        )
        write_controllers(config, wanted)
        argv = [sys.executable, "-m", "simulator.controllers", str(config)]
        await self._supervisor.start(Program("controllers", argv, controllers.READY_LINE))

    def _instance(self, stage: Stage, name: str) -> Instance:
        labels = {RACK_LABEL: self._scenario.rack(name)}
        return Instance(f"simulated://{name}", str(stage.machines[name].base), labels)

    def _node(self, name: str) -> NodeSpec:
        labels = {"gpumend.io/pool": "training", "node.kubernetes.io/instance-type": "p5.48xlarge"}
        return NodeSpec(name, labels, f"simulated://{name}")

    def _engine(self, stage: Stage, name: str, token: str) -> Program:
        role = "watcher" if name == "watcher" else "incidents"
        config = self._directory / f"kubeconfig-{name}"
        stage.endpoint.write_kubeconfig(config, user=ADMIN, token=token)
        sabotage = self._settings.sabotage
        module = ["simulator.demo.saboteur", sabotage] if sabotage else ["worker"]
        argv = [sys.executable, "-m", *module, "--role", role, "--cluster", CLUSTER]
        argv += ["--policy", str(POLICY), "--grace", "3"]
        env = {
            "KUBECONFIG": str(config),
            "TEMPORAL_ADDRESS": stage.temporal,
            "TEMPORAL_NAMESPACE": NAMESPACE,
            **WATCHER_LIMITS,
        }
        return Program(name, argv, "what=ready", env)


def search_attributes() -> dict[str, str]:
    """What the engine writes on its runs, by Temporal's names of types."""
    keywords = ("Cluster", "Node", "Machine", "Pool", "Rack", "Fault", "Step")
    kinds = dict.fromkeys(keywords, "Keyword")
    return {**kinds, "Steps": "KeywordList", "DueAt": "Datetime"}


def _tls(endpoint: Endpoint) -> ssl.SSLContext | None:
    return endpoint.tls()
