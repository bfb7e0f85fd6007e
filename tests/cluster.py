"""A small cluster for tests of what we do to the world: the emulated API server, in this process,
behind the production adapter, with kubelets that obey or don't.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.adapters.kubernetes import KubernetesApi, connect
from fleet.condition import format_message
from fleet.fault import CONDITION_OF, Advice, ConditionType, Fault, FaultName
from fleet.instant import format_instant
from fleet.mark import UNDO_TAINT, Mark, MarkState, format_mark
from fleet.names import HOLD_EFFECT, HOLD_TAINT, MARK_ANNOTATION, NAMESPACE, agent_lease
from fleet.node import NodeIdentity, NodeState, machine_of, read_node
from fleet.part import HOST, Part
from fleet.request import StepRequest
from fleet.step import NodeStepReport, NodeStepResult, Step, format_report
from simulator.apiserver import ApiServer
from tests.contract.client import MERGE, Client

BOOT = "boot-1"
INCIDENT = "0000aaaa-20261129120000"
FAULT = Fault(
    part=Part("gpu:3"),
    name=FaultName.UNCONTAINED_MEMORY,
    code="xid:95",
    advice=Advice.RESET_GPU,
    count=1,
    since=datetime(2026, 11, 29, 12, 0, tzinfo=UTC),
)
SOON = timedelta(seconds=20)
"""A deadline that a passing test never reaches."""


def now() -> datetime:
    return datetime.now(UTC)


def conditions(*faults: Fault, boot: str = BOOT, ready: str = "True") -> list[dict[str, Any]]:
    """What agent and kubelet say about a node that has these faults and no others."""
    said = [{"type": "Ready", "status": ready, "reason": "T", "message": "m"}]
    for kind in ConditionType:
        mine = [fault for fault in faults if CONDITION_OF[fault.name] is kind]
        status = "False" if mine else "True"
        text = format_message(boot, mine)
        said.append({"type": kind, "status": status, "reason": "T", "message": text})
    return said


def mark(state: MarkState = MarkState.OWNED, **changes: Any) -> Mark:
    opened = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
    plain = Mark(INCIDENT, "", "", state, opened, undo=(UNDO_TAINT,))
    return replace(plain, **changes)


HOLD = {"key": HOLD_TAINT, "value": "uncontained-memory", "effect": HOLD_EFFECT}


def node_manifest(
    name: str = "n1",
    *,
    marked: Mark | None = None,
    taints: list[dict[str, str]] | None = None,
    faults: tuple[Fault, ...] = (FAULT,),
    boot: str = BOOT,
    ready: str = "True",
    gpus: int = 8,
    provider_id: str = "cloud:///i-1",
    **spec: Any,
) -> dict[str, Any]:
    """A Node that is held for FAULT, unless told otherwise."""
    annotations = {MARK_ANNOTATION: format_mark(marked)} if marked else {}
    offers = {"nvidia.com/gpu": str(gpus), "cpu": "64"}
    return {
        "metadata": {"name": name, "annotations": annotations, "labels": {}},
        "spec": {
            "providerID": provider_id,
            "taints": [HOLD] if taints is None else taints,
            **spec,
        },
        "status": {
            "nodeInfo": {"bootID": boot, "systemUUID": "s1"},
            "capacity": offers,
            "allocatable": offers,
            "conditions": conditions(*faults, boot=boot, ready=ready),
        },
    }


def pod_manifest(
    name: str,
    node: str | None = "n1",
    *,
    owner: str | None = "ReplicaSet",
    namespace: str = "default",
    uid: str = "owner-uid",
    **spec: Any,
) -> dict[str, Any]:
    """A Pod of a controller, bound to the node."""
    api_version = "apps/v1" if owner in ("ReplicaSet", "DaemonSet", "StatefulSet") else "v1"
    reference = {
        "apiVersion": api_version,
        "kind": owner,
        "name": f"{name}-owner",
        "uid": uid,
        "controller": True,
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name},
            "annotations": {},
            "ownerReferences": [reference] if owner else [],
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "c", "image": "i"}],
            **spec,
        },
        "status": running(),
    }


def running(ready: bool = True) -> dict[str, Any]:
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        "containerStatuses": [status_of({"running": {}})],
    }


def status_of(state: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "c",
        "image": "i",
        "imageID": "i",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def stopped(message: str = "", phase: str = "Succeeded", code: int = 0) -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": "Completed", "message": message}
    return {"phase": phase, "containerStatuses": [status_of({"terminated": terminated})]}


def report(
    operation: str,
    step: Step,
    result: NodeStepResult = NodeStepResult.DONE,
    boot: str = BOOT,
    **more: Any,
) -> str:
    return format_report(NodeStepReport(operation, step, result, boot, **more))


class Cluster:
    """The API server, the adapter, and a kubelet for all nodes."""

    def __init__(self, server: ApiServer, api: KubernetesApi, raw: Client) -> None:
        self.server = server
        self.api = api
        self.raw = raw
        self.stuck: set[str] = set()
        """Names of Pods that the kubelet lets run for ever."""
        self.on_step: Callable[[dict[str, Any]], str | None] | None = None
        """What a step Pod leaves as its message; None: it never ends; unset: it never starts."""
        self.after_step: Callable[[dict[str, Any]], Any] | None = None

    async def add_node(self, **about: Any) -> NodeIdentity:
        about.setdefault("marked", mark())
        manifest: dict[str, Any] = await self.raw.created("/api/v1/nodes", node_manifest(**about))
        await self.renew_lease(manifest["metadata"]["name"])
        return read_node(manifest, "c1").identity

    async def renew_lease(self, node: str, at: datetime | None = None) -> None:
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
        renewed = (at or now()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        body = {"metadata": {"name": agent_lease(node)}, "spec": {"renewTime": renewed}}
        answer = await self.raw.post(leases, body)
        if answer.status_code == 409:
            answer = await self.raw.patch(f"{leases}/{agent_lease(node)}", {"spec": body["spec"]})
        assert answer.is_success, answer.text

    async def renew_kubelet_lease(self, node: str, at: datetime | None = None) -> None:
        """What a kubelet says of itself; stale, if `at` is long ago."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        renewed = (at or now()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": renewed}
        answer = await self.raw.post(leases, {"metadata": {"name": node}, "spec": spec})
        if answer.status_code == 409:
            answer = await self.raw.patch(f"{leases}/{node}", {"spec": spec})
        assert answer.is_success, answer.text

    async def add_pod(self, manifest: dict[str, Any]) -> dict[str, Any]:
        namespace = manifest["metadata"]["namespace"]
        status = manifest.pop("status", None)
        made = await self.raw.created(f"/api/v1/namespaces/{namespace}/pods", manifest)
        return await self.set_status(made, status) if status else dict(made)

    async def set_status(self, pod: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        answer = await self.raw.patch(path, {"status": status}, MERGE)
        assert answer.is_success, answer.text
        changed: dict[str, Any] = answer.json()
        return changed

    async def add_budget(self, name: str, app: str, **spec: Any) -> None:
        await self.raw.created(
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
            },
        )

    async def change_node(self, patch: dict[str, Any], name: str = "n1") -> None:
        for path, part in (
            (f"/api/v1/nodes/{name}", patch),
            (f"/api/v1/nodes/{name}/status", patch),
        ):
            answer = await self.raw.patch(path, part, MERGE)
            assert answer.is_success, answer.text

    async def node(self, name: str = "n1") -> NodeState:
        return read_node(await self.raw.read(f"/api/v1/nodes/{name}"), "c1")

    async def pods(self, namespace: str = "default") -> set[str]:
        listing: dict[str, Any] = await self.raw.read(f"/api/v1/namespaces/{namespace}/pods")
        return {each["metadata"]["name"] for each in listing["items"]}

    def writes(
        self, *, verb: str = "", path: str = "", by: str = "gpumend"
    ) -> list[dict[str, Any]]:
        """What the adapter wrote, from the audit log."""
        lines = self.server.endpoint.audit.read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        return [
            each
            for each in entries
            if each.get("userAgent", "").startswith(by)
            and verb in each["verb"]
            and path in each["requestURI"]
            and each["verb"] not in ("get", "list", "watch")
        ]

    async def run_kubelet(self) -> None:
        seen: set[str] = set()
        listing = await self.raw.read("/api/v1/pods")
        version = listing["metadata"]["resourceVersion"]
        for pod in listing["items"]:
            await self._obey(pod, seen)
        async with self.raw.watch("/api/v1/pods", resourceVersion=version) as watch:
            while True:
                try:
                    kind, pod = await watch.next()
                except (TimeoutError, StopAsyncIteration):
                    return
                if kind in ("ADDED", "MODIFIED"):
                    await self._obey(pod, seen)

    async def _obey(self, pod: dict[str, Any], seen: set[str]) -> None:
        meta = pod["metadata"]
        if meta["name"] in self.stuck:
            return
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        operation = meta.get("labels", {}).get("gpumend.io/operation")
        if meta.get("deletionTimestamp"):
            mine = {"uid": meta["uid"]}
            await self.raw.delete(path, {"gracePeriodSeconds": 0, "preconditions": mine})
        elif operation and self.on_step and meta["uid"] not in seen:
            seen.add(meta["uid"])
            await self.set_status(pod, running())
            message = self.on_step(pod)
            if message is not None:
                await self.set_status(pod, stopped(message))
            if self.after_step:
                await self.after_step(pod)


@asynccontextmanager
async def cluster_in(directory: Path, *, kubelet: bool = True) -> AsyncIterator[Cluster]:
    async with ApiServer(directory / "api", disruption_controller=True) as server:
        config = server.endpoint.write_kubeconfig(directory / "kubeconfig")
        async with connect(str(config)) as api, Client(server.endpoint) as raw:
            cluster = Cluster(server, api, raw)
            task = asyncio.create_task(cluster.run_kubelet()) if kubelet else None
            try:
                yield cluster
            finally:
                if task:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)


def request_for(node: NodeIdentity, step: Step, **changes: Any) -> StepRequest:
    plain = StepRequest(
        operation=f"{INCIDENT}-1-{step}",
        step=step,
        incident=INCIDENT,
        node=node,
        boot_id=BOOT,
        deadline=now() + SOON,
        faults=(FAULT,),
    )
    return replace(plain, **changes)


LOST = replace(FAULT, name=FaultName.HOST_UNREACHABLE, part=HOST, code="condition:Ready=Unknown")
"""A node whose kubelet does not answer."""


def identity(name: str = "n1", uid: str = "u1", provider_id: str = "cloud:///i-1") -> NodeIdentity:
    return NodeIdentity("c1", name, uid, machine_of(provider_id, "s1", uid))


def seen_node(uid: str = "u1", **about: Any) -> tuple[dict[str, Any], NodeState]:
    """A Node as a read gives it, for tests without a server."""
    about.setdefault("marked", mark())
    manifest = node_manifest(**about)
    manifest["metadata"] |= {
        "uid": uid,
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-01T00:00:00Z",
    }
    return manifest, read_node(manifest, "c1")


class Temporal:
    """The surroundings of one activity: what it says, and a way to stop it."""

    def __init__(self) -> None:
        self.env = ActivityEnvironment()
        self.said: list[str] = []
        self._spoke = asyncio.Event()
        self.env.on_heartbeat = self._hear

    def later_try(self) -> None:
        """As if an earlier try of the activity had ended without a word."""
        self.env.info = replace(self.env.info, attempt=2)

    def _hear(self, *words: Any) -> None:
        self.said.extend(str(each) for each in words)
        self._spoke.set()

    async def heard(self, words: str) -> None:
        """Wait until the activity has said this."""
        async with asyncio.timeout(SOON.total_seconds()):
            while not any(words in each for each in self.said):
                self._spoke.clear()
                await self._spoke.wait()

    async def run(self, activity: Callable[..., Any], request: StepRequest) -> Any:
        async with asyncio.timeout(30):
            return await self.env.run(activity, request)


def rfc(at: datetime) -> str:
    return format_instant(at.replace(microsecond=0))
