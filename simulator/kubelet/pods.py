"""Runs the pods that are bound to one node, each in a task of its own from admission to its end."""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simulator.client import STRATEGIC, Api, ApiError
from simulator.hardware.machine import Machine
from simulator.kubelet import status
from simulator.kubelet.container import Container, Ended, mounts_host, projected_token

STOP_SECONDS = 1.0
"""A workload that is only a state takes this long to stop, or its grace, if that is shorter."""
RESTART_SECONDS = 1.0
RESTART_SECONDS_MOST = 10.0
TOKEN_SECONDS = 86_400

Pod = Mapping[str, Any]

log = logging.getLogger("kubelet")


class Pods:
    """All pods of one node. `scratch` keeps a directory for each."""

    def __init__(
        self, api: Api, machine: Machine, node: str, scratch: Path, ca: Path | None = None
    ) -> None:
        self._api = api
        self._ca = ca
        self._machine = machine
        self._node = node
        self._scratch = scratch
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping: dict[str, asyncio.Event] = {}
        self._latest: dict[str, Pod] = {}
        self._dead = False

    def die(self) -> None:
        """The kubelet ends and its containers go on: nothing is heard or said any more."""
        self._dead = True

    async def run(self) -> None:
        """Follow the pods of this node for ever; cancelled, it ends them as a power cut would."""
        query = {"fieldSelector": f"spec.nodeName={self._node}"}
        try:
            async for kind, thing in self._api.follow("/api/v1/pods", **query):
                if self._dead:
                    continue
                if kind == "SYNC":
                    self._sync(thing["items"])
                elif kind == "DELETED":
                    self._forget(thing["metadata"]["uid"])
                elif kind != "BOOKMARK":
                    self._see(thing)
        finally:
            await self._cut()

    def _sync(self, pods: list[Pod]) -> None:
        for pod in pods:
            self._see(pod)
        for uid in set(self._tasks) - {pod["metadata"]["uid"] for pod in pods}:
            self._forget(uid)

    def _see(self, pod: Pod) -> None:
        uid = pod["metadata"]["uid"]
        self._latest[uid] = pod
        if uid not in self._tasks:
            self._stopping[uid] = asyncio.Event()
            task = asyncio.create_task(self._live(uid, pod), name=pod["metadata"]["name"])
            task.add_done_callback(_complain)
            self._tasks[uid] = task
        if "deletionTimestamp" in pod["metadata"]:
            self._stopping[uid].set()

    def _forget(self, uid: str) -> None:
        task = self._tasks.pop(uid, None)
        self._latest.pop(uid, None)
        if task:
            task.cancel()
            self._machine.hold(uid, ())

    async def _cut(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _live(self, uid: str, pod: Pod) -> None:
        """One pod from its admission to its last word."""
        with _gone_is_fine():
            phase = (pod.get("status") or {}).get("phase", "Pending")
            never = pod["spec"].get("restartPolicy", "Always") == "Never"
            if phase in ("Succeeded", "Failed"):
                pass
            elif phase == "Running" and never and mounts_host(pod):
                await self._write(pod, status.lost(pod, datetime.now(UTC)))
            elif mounts_host(pod):
                await self._run_for_real(uid, pod, never)
            else:
                await self._play(uid, pod)
            await self._stopping[uid].wait()
            self._machine.hold(uid, ())
            await self._say("DELETE", _path(pod), _now_and(uid), "application/json")

    async def _play(self, uid: str, pod: Pod) -> None:
        """A workload that is only a state; the GPUs that it asked for are really held."""
        self._machine.hold(uid, self._free_gpus(_gpus(pod)))
        await self._write(pod, status.running(pod, datetime.now(UTC), _restarts(pod)))
        await self._stopping[uid].wait()
        await asyncio.sleep(min(STOP_SECONDS, self._grace(uid)))

    def _free_gpus(self, count: int) -> tuple[int, ...]:
        hardware = self._machine.read()
        held = {index for each in hardware.holders.values() for index in each}
        return tuple(gpu.index for gpu in hardware.gpus if gpu.index not in held)[:count]

    async def _run_for_real(self, uid: str, pod: Pod, never: bool) -> None:
        restarts, pause = _restarts(pod), RESTART_SECONDS
        while True:
            now = datetime.now(UTC)
            await self._write(pod, status.running(pod, now, restarts))
            ended = await self._one_run(uid, pod)
            if ended is None:
                return await self._write(pod, status.overdue(datetime.now(UTC)))
            if never or self._stopping[uid].is_set():
                return await self._write(pod, status.finished(pod, ended, datetime.now(UTC)))
            restarts += 1
            await asyncio.sleep(pause)
            pause = min(pause * 2, RESTART_SECONDS_MOST)

    async def _one_run(self, uid: str, pod: Pod) -> Ended | None:
        """Run the container once; None if it outlived the pod's deadline."""
        scratch = self._scratch / uid
        await self._mount_token(pod, scratch)
        container = Container(pod, self._machine.root, scratch)
        run = asyncio.create_task(container.run())
        stop = asyncio.create_task(self._stopping[uid].wait())
        try:
            limit = pod["spec"].get("activeDeadlineSeconds")
            await asyncio.wait({run, stop}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if run.done():
                return run.result()
            if not stop.done():
                return None
            container.terminate()
            await asyncio.wait({run}, timeout=self._grace(uid))
            container.kill()
            return await run
        finally:
            stop.cancel()
            run.cancel()
            container.kill()

    async def _mount_token(self, pod: Pod, scratch: Path) -> None:
        """The projected volume with a token of the pod's service account, bound to the pod."""
        spec, meta, volume = pod["spec"], pod["metadata"], projected_token(pod)
        if not volume:
            return
        accounts = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts"
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}
        body = {"spec": {"expirationSeconds": TOKEN_SECONDS, "boundObjectRef": bound}}
        path = f"{accounts}/{spec['serviceAccountName']}/token"
        answer = await self._api.insist("POST", path, body, "application/json")
        place = scratch / volume
        place.mkdir(parents=True, exist_ok=True)
        (place / "token").touch(mode=0o600)
        (place / "token").write_text(answer["status"]["token"])
        if self._ca:
            shutil.copy(self._ca, place / "ca.crt")

    def _grace(self, uid: str) -> float:
        meta = self._latest[uid]["metadata"]
        return float(meta.get("deletionGracePeriodSeconds", 30))

    async def _write(self, pod: Pod, body: dict[str, Any]) -> None:
        """A status for exactly this pod, until the server has taken it."""
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": body}
        await self._say("PATCH", f"{_path(pod)}/status", patch, STRATEGIC)

    async def _say(self, method: str, path: str, body: dict[str, Any], kind: str) -> None:
        if self._dead:
            await asyncio.Event().wait()  # until the power takes it
        await self._api.insist(method, path, body, kind)


@contextlib.contextmanager
def _gone_is_fine() -> Iterator[None]:
    """A pod may go, or come again under its name, before our word about it is heard."""
    try:
        yield
    except ApiError as error:
        if error.code not in (404, 409):
            raise


def _complain(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("pod=%s", task.get_name(), exc_info=error)


def _path(pod: Pod) -> str:
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def _now_and(uid: str) -> dict[str, Any]:
    return {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}


def _gpus(pod: Pod) -> int:
    resources = pod["spec"]["containers"][0].get("resources") or {}
    return int((resources.get("limits") or {}).get("nvidia.com/gpu", 0))


def _restarts(pod: Pod) -> int:
    """A container that ran before starts once more than it had."""
    found = (pod.get("status") or {}).get("containerStatuses") or ()
    return int(found[0].get("restartCount", 0)) + 1 if found else 0
