"""Starts an engine process that breaks one promise: `python -m simulator.demo.saboteur PROMISE …`.

The engine has no such switch. It is composed here with a port to Kubernetes that lies to it, so
that what is tried is whether the observer, who reads only the audit, finds it out.

- `budget`: every node looks like a pool of its own, so that no budget of a pool is ever used up.
- `release`: every verify looks passed, and a node that the engine works on looks healthy. Both, as
  the engine gives a node back only when verify and agent agree. A proof is a verify: that, too.
- `unknown`: what a condition or a verify could not tell looks like a fault.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fleet.condition import format_message, parse_message
from fleet.fault import Advice, Fault, FaultName
from fleet.instant import parse_instant
from fleet.part import parse_part
from fleet.ports import Json, Kubernetes, Page, PatchType, WatchEvent
from simulator.demo.another_port import run_worker

STEP_LABEL, OPERATION_LABEL = "gpumend.io/step", "gpumend.io/operation"
PROOFS = "prove-"
OURS = "gpumend.io/"
MARK = "gpumend.io/incident"
POOL = "gpumend.io/pool"


class LyingKubernetes:
    """The port, with answers bent by `lie`; what is written passes unchanged."""

    def __init__(self, inner: Kubernetes, sabotage: str) -> None:
        """`sabotage` is a key of `LIES`."""
        self._inner = inner
        self._lie = LIES[sabotage]

    async def get(self, path: str) -> Json:
        """As the port."""
        return self._lie(await self._inner.get(path))

    async def page(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        limit: int = 500,
        token: str = "",
    ) -> Page:
        """As the port."""
        page = await self._inner.page(path, query=query, limit=limit, token=token)
        return Page(tuple(map(self._lie, page.items)), page.resource_version, page.next_page)

    def watch(
        self, path: str, *, resource_version: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """As the port."""
        return self._bent(self._inner.watch(path, resource_version=resource_version, query=query))

    async def create(self, path: str, body: Json) -> Json:
        """As the port."""
        return self._lie(await self._inner.create(path, body))

    async def patch(self, path: str, body: Json | list[Json], kind: PatchType) -> Json:
        """As the port."""
        return self._lie(await self._inner.patch(path, body, kind))

    async def delete(self, path: str, *, uid: str, grace_seconds: int | None = None) -> Json:
        """As the port."""
        return await self._inner.delete(path, uid=uid, grace_seconds=grace_seconds)

    @asynccontextmanager
    async def _bent(
        self, watch: AbstractAsyncContextManager[AsyncIterator[WatchEvent]]
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        async with watch as events:
            yield (WatchEvent(each.type, self._lie(each.object)) async for each in events)


def passed_verify(thing: Json) -> Json:
    """A verify pod that ended looks as if it had found nothing."""
    return _verify_with(thing, "done", 0, _well)


def believed_proof(thing: Json) -> Json:
    """The lie about a proof: its Pod has ended well before it has begun."""
    labels = thing.get("metadata", {}).get("labels") or {}
    operation = str(labels.get(OPERATION_LABEL, ""))
    if not operation.startswith(PROOFS) or "spec" not in thing:
        return thing
    copy: Json = json.loads(json.dumps(thing))
    command = copy["spec"]["containers"][0]["command"]
    told = {name: command[at + 1] for at, name in enumerate(command[:-1])}
    asked = [command[at + 1] for at, name in enumerate(command) if name == "--check"]
    report = {
        "operation": operation,
        "step": "verify",
        "result": "done",
        "boot_id": told["--boot-id"],
        "findings": [_well({"check": each, "part": "host"}) for each in asked],
    }
    ended = {"exitCode": 0, "message": json.dumps(report)}
    statuses = [{"name": "step", "state": {"terminated": ended}}]
    copy["status"] = {"phase": "Succeeded", "containerStatuses": statuses}
    return copy


def failed_verify(thing: Json) -> Json:
    """A verify pod that could not tell looks as if it had found a fault."""
    if '"unknown"' not in json.dumps(thing.get("status") or {}).replace('\\"', '"'):
        return thing
    return _verify_with(thing, "failed", 1, _accused)


def _verify_with(
    thing: Json, result: str, status: int, finding: Callable[[Mapping[str, Any]], Json]
) -> Json:
    """A verify pod with another end; every other object as it is."""
    if _step(thing) != "verify":
        return thing
    copy: Json = json.loads(json.dumps(thing))
    for each in (copy.get("status") or {}).get("containerStatuses") or ():
        terminated = (each.get("state") or {}).get("terminated") or {}
        if terminated.get("message"):
            report = json.loads(terminated["message"])
            findings = [finding(one) for one in report.get("findings", ())]
            terminated["message"] = json.dumps({**report, "result": result, "findings": findings})
            terminated["exitCode"] = status
            copy["status"]["phase"] = "Failed" if status else "Succeeded"
    return copy


def healthy_if_owned(thing: Json) -> Json:
    """A node whose incident a workflow has taken up looks as if its agent found nothing."""
    mark = (thing.get("metadata", {}).get("annotations") or {}).get(MARK, "")
    if '"owned"' not in mark:
        return thing
    copy: Json = json.loads(json.dumps(thing))
    for each in copy["status"]["conditions"]:
        if each["type"].startswith(OURS):
            boot = parse_message(each["message"]).boot_id
            each.update(status="True", reason="Healthy", message=format_message(boot, []))
    return copy


def all_well(thing: Json) -> Json:
    """The lie about a release: whatever is looked at has been proven well."""
    return healthy_if_owned(believed_proof(passed_verify(thing)))


def fault_for_unknown(thing: Json) -> Json:
    """The lie about the unknown: whatever could not be told is taken for a memory fault."""
    return faulty_condition(failed_verify(thing))


def faulty_condition(thing: Json) -> Json:
    """A memory condition of ours that is unknown looks like a fault of the first GPU."""
    conditions = (thing.get("status") or {}).get("conditions") or ()
    if not any(_untold(each) for each in conditions):
        return thing
    copy: Json = json.loads(json.dumps(thing))
    for each in copy["status"]["conditions"]:
        if _untold(each):
            boot = parse_message(each["message"]).boot_id
            since = parse_instant(each["lastTransitionTime"])
            name, advice = FaultName.UNCONTAINED_MEMORY, Advice.RESET_GPU
            fault = Fault(parse_part("gpu:0"), name, "xid:95", advice, 1, since)
            each["status"], each["message"] = "False", format_message(boot, [fault])
            each["reason"] = "UncontainedMemory"
    return copy


def _step(thing: Json) -> str:
    return str((thing.get("metadata", {}).get("labels") or {}).get(STEP_LABEL, ""))


def _untold(condition: Mapping[str, Any]) -> bool:
    return bool(condition["type"] == "gpumend.io/Memory" and condition["status"] == "Unknown")


def _well(finding: Mapping[str, Any]) -> Json:
    return {"check": finding["check"], "part": finding["part"], "verdict": "ok"}


def _accused(finding: Mapping[str, Any]) -> Json:
    if finding["verdict"] != "unknown":
        return dict(finding)
    return {
        "check": finding["check"],
        "part": "gpu:0",
        "verdict": "fault",
        "fault": FaultName.UNCONTAINED_MEMORY.value,
        "code": "xid:95",
        "advice": Advice.RESET_GPU.value,
        "severity": "fatal",
    }


def pool_of_its_own(thing: Json) -> Json:
    """The lie about the budget: every node looks as if it were a pool of its own."""
    labels = thing.get("metadata", {}).get("labels") or {}
    if POOL not in labels:
        return thing
    copy: Json = json.loads(json.dumps(thing))
    copy["metadata"]["labels"][POOL] = thing["metadata"]["name"]
    return copy


LIES = {
    "budget": pool_of_its_own,
    "release": all_well,
    "unknown": fault_for_unknown,
}


def main(sabotage: str, arguments: Sequence[str]) -> int:
    """Run the engine's own composition root with the lying port in place of the honest one."""
    return run_worker(lambda honest: LyingKubernetes(honest, sabotage), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
