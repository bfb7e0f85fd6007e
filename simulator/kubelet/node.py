"""The kubelet's own Node: registration, heartbeats, and the first words after a boot."""

import asyncio
import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from simulator.client import UNREACHABLE, Api, ApiError
from simulator.hardware.machine import Machine, system_uuid
from simulator.kubelet.status import Json, condition

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What a kubelet is configured with. `lease` in seconds; it is renewed four times as often.

    `machine` is the name that the machine was built under, empty where it is the Node's: another
    machine may come up under an old name. `taints` and `annotations` are there from the moment in
    which it creates its Node, as whoever made the node wants it.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    provider_id: str = ""
    lease: int = 4
    machine: str = ""
    taints: Sequence[Mapping[str, str]] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


class NodeStatus:
    """Keeps one Node and its Lease alive."""

    def __init__(self, api: Api, machine: Machine, spec: NodeSpec) -> None:
        self._api = api
        self._machine = machine
        self._spec = spec
        self._path = f"/api/v1/nodes/{spec.name}"

    async def register(self) -> None:
        """Create the Node if it is not there, say which boot this is, not ready yet; be alive."""
        try:
            await self._insist("POST", "/api/v1/nodes", self._manifest())
        except ApiError as error:
            if error.code != 409:
                raise
        await self._say("False", "KubeletNotReady", "container runtime is starting")
        await self._beat()

    async def ready(self) -> None:
        """Say that pods can run here."""
        await self._say("True", "KubeletReady", "kubelet is posting ready status")

    async def heartbeat(self) -> None:
        """Renew the Lease for ever, and say that the node is ready where others say otherwise."""
        while True:
            await asyncio.sleep(self._spec.lease / 4)
            await self._beat()
            with contextlib.suppress(*UNREACHABLE, ApiError):
                if not _ready(await self._api.get(self._path)):
                    await self.ready()

    async def _beat(self) -> None:
        """Renew the Lease once; where the server is away it grows old, which is what it is for."""
        with contextlib.suppress(*UNREACHABLE, ApiError):
            await self._renew()

    async def _say(self, status: str, reason: str, message: str) -> None:
        now = datetime.now(UTC)
        gpus = str(len(self._machine.read().gpus))
        body = {
            "status": {
                "conditions": [condition("Ready", status, reason, message, now)],
                "addresses": [{"type": "InternalIP", "address": address_of(self._spec.name)}],
                "nodeInfo": self._info(),
                "capacity": {GPU: gpus, "cpu": "192", "memory": "2000Gi", "pods": "110"},
                "allocatable": {GPU: gpus, "cpu": "190", "memory": "1990Gi", "pods": "110"},
            }
        }
        await self._insist("PATCH", f"{self._path}/status", body)

    async def _insist(self, method: str, path: str, body: Json) -> Json:
        kind = "application/json" if method == "POST" else "application/strategic-merge-patch+json"
        return await self._api.insist(method, path, body, kind)

    def _manifest(self) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self._spec.name,
                "labels": {"kubernetes.io/hostname": self._spec.name, **self._spec.labels},
                "annotations": dict(self._spec.annotations),
            },
            "spec": {"providerID": self._spec.provider_id, **self._tainted()},
        }

    def _tainted(self) -> dict[str, Any]:
        taints = [dict(each) for each in self._spec.taints]
        return {"taints": taints} if taints else {}

    def _info(self) -> dict[str, str]:
        identity = system_uuid(self._spec.machine or self._spec.name)
        return {
            "bootID": self._machine.boot_id,
            "systemUUID": identity,
            "machineID": identity.replace("-", ""),
            "kernelVersion": "6.8.0-1021",
            "osImage": "simulated",
            "containerRuntimeVersion": "simulated://1",
            "kubeletVersion": "v1.37.2",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        }

    async def _renew(self) -> None:
        name = self._spec.name
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = {
            "holderIdentity": name,
            "leaseDurationSeconds": self._spec.lease,
            "renewTime": now,
        }
        try:
            await self._api.patch(f"{LEASES}/{name}", {"spec": spec})
        except ApiError as error:
            if error.code != 404:
                raise
            await self._api.create(LEASES, {"metadata": {"name": name}, "spec": spec})


def address_of(name: str) -> str:
    """The loopback address of a node's host network: each has one of its own."""
    digits = hashlib.sha256(name.encode()).digest()
    return f"127.{digits[0]}.{digits[1]}.{max(1, digits[2])}"


def _ready(node: Json) -> bool:
    conditions = node["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
