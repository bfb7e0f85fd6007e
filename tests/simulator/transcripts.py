"""Writes audit logs by hand, as an API server would: the observer's tests read them as text."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from simulator.observer.transcript import Write, read_change, read_lines

WORKER = "system:serviceaccount:gpumend:worker"
WATCHER = "system:serviceaccount:gpumend:watcher"
AGENT = "system:serviceaccount:gpumend:gpumend-agent"
KUBELET = "system:node:n1"
MESSAGE = "boot=b1\npart=gpu:3 fault={fault} code=xid:95 advice=reset-gpu count=1"
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Log:
    """A cluster of nodes n1, n2, ... whose every write is logged."""

    lines: list[str] = field(default_factory=list)
    changes: list[Write] = field(default_factory=list)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    now: datetime = START
    version: int = 0

    @property
    def writes(self) -> list[Write]:
        return sorted([*read_lines(self.lines), *self.changes], key=lambda write: write.at)

    def log(self, user, verb, resource, name, request, response, **more):
        self.now += timedelta(seconds=more.pop("after", 1))
        self.version += 1
        code = more.pop("code", 200)
        if "metadata" in response:
            response["metadata"]["resourceVersion"] = str(self.version)
        reference = {"resource": resource, "name": name, "namespace": more.pop("namespace", "")}
        reference["subresource"] = more.pop("subresource", "")
        event = {
            "kind": "Event",
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": user, "extra": more.pop("extra", {})},
            "objectRef": reference,
            "responseStatus": {"code": code},
            "requestObject": request,
            "responseObject": response,
            "stageTimestamp": self.now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        self.lines.append(json.dumps(event))

    def node(self, name="n1", **labels):
        node: dict[str, Any] = {
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {}},
            "spec": {"taints": [], "providerID": name},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        self.nodes[name] = node
        self.log(KUBELET, "create", "nodes", name, {}, copy(node))
        return self

    def condition(
        self,
        fault="uncontained-memory",
        status="False",
        name="n1",
        kind="gpumend.io/Memory",
        user=AGENT,
    ):
        said = {"type": kind, "status": status, "message": MESSAGE.format(fault=fault)}
        conditions = self.nodes[name]["status"]["conditions"]
        conditions[:] = [each for each in conditions if each["type"] != kind] + [said]
        request = {"status": {"conditions": [said]}}
        self.log(
            user,
            "patch",
            "nodes",
            name,
            request,
            copy(self.nodes[name]),
            subresource="status",
            extra={"authentication.kubernetes.io/node-name": [name]},
        )
        return self

    def change(self, user=WORKER, name="n1", **changes):
        node = self.nodes[name]
        if "hold" in changes:
            others = [each for each in node["spec"]["taints"] if each["key"] != "gpumend.io/hold"]
            value = changes["hold"]
            ours = [{"key": "gpumend.io/hold", "value": value, "effect": "NoSchedule"}]
            node["spec"]["taints"] = others + (ours if value else [])
        if "mark" in changes:
            annotations = node["metadata"]["annotations"]
            annotations.pop("gpumend.io/incident", None)
            if changes["mark"]:
                annotations["gpumend.io/incident"] = json.dumps(changes["mark"])
        if "taints" in changes:
            node["spec"]["taints"] = changes["taints"]
        if "unschedulable" in changes:
            node["spec"]["unschedulable"] = changes["unschedulable"]
        self.log(user, "patch", "nodes", name, {}, copy(node), after=changes.get("after", 1))
        return self

    def unproven(self, why="", name="n1", user=KUBELET, boot="b1"):
        """The node carries the taint in this boot; `why` None: it is taken off."""
        taint = {"key": "gpumend.io/unproven", "value": why, "effect": "NoSchedule"}
        self.nodes[name]["status"]["nodeInfo"] = {"bootID": boot}
        return self.change(user, name, taints=[] if why is None else [taint])

    def proves(self, result="done", operation="prove-1", found=()):
        return self.step("verify", operation, result=result, found=found)

    def hold(self, fault="uncontained-memory", name="n1", incident="i1", state="pending"):
        mark = {"id": incident, "state": state, "undo": ["taint"]}
        return self.change(WATCHER, name, hold=fault, mark=mark)

    def release(self, name="n1", incident="i1"):
        return self.change(name=name, hold="", mark={"id": incident, "state": "probation"})

    def close(self, name="n1", user=WORKER):
        return self.change(user, name, mark=None)

    def hand_off(self, incident="i1"):
        meta = {"name": "handed-off", "annotations": {"gpumend.io/incident": incident}}
        body = {"metadata": meta, "reason": "IncidentHandedOff"}
        self.log(WORKER, "create", "events", "handed-off", body, copy(body))
        return self

    def asks(self, incident="i1"):
        return self.event("IncidentAsks", WORKER, incident)

    def agrees(self, name="n1", user="person:ada"):
        return self.event("PersonApproved", user, node=name)

    def event(self, reason, user, incident="", node=""):
        body = {
            "metadata": {"name": reason, "annotations": {"gpumend.io/incident": incident}},
            "involvedObject": {"kind": "Node", "name": node},
            "reason": reason,
        }
        self.log(user, "create", "events", reason, body, copy(body))
        return self

    def machine(self, change, name="n1", operation="i1-9-replace"):
        """What the provider says in its journal."""
        self.now += timedelta(seconds=1)
        said = {"at": self.now.isoformat(), "operation": operation, "change": change}
        write = read_change(json.dumps({**said, "node": name, "provider_id": name}))
        assert write
        self.changes.append(write)
        return self

    def gone_node(self, name="n1", user="cloud"):
        """Somebody deletes the Node."""
        self.log(user, "delete", "nodes", name, {}, {"kind": "Status", "status": "Success"})
        return self

    def not_ready(self, name="n1"):
        conditions = self.nodes[name]["status"]["conditions"]
        conditions[0]["status"] = "Unknown"
        self.log("controllers", "patch", "nodes", name, {}, copy(self.nodes[name]))
        return self

    def seen_sick(self, name="n1"):
        """A check of ours sees the fault."""
        return self.step("verify", f"seen-{name}", node=name, result="failed")

    def pod(self, pod, node="n1", owner="ReplicaSet", phase="Running", **more):
        self.pods[pod] = {
            "kind": "Pod",
            "metadata": {
                "name": pod,
                "uid": f"uid-{pod}",
                "ownerReferences": [{"kind": owner, "controller": True, "uid": "o"}],
                **more,
            },
            "spec": {"nodeName": node},
            "status": {"phase": phase},
        }
        self.log("owner", "create", "pods", pod, copy(self.pods[pod]), copy(self.pods[pod]))
        return self

    def evict(self, pod, uid=None, user=WORKER, code=201, **options):
        options["preconditions"] = {"uid": f"uid-{pod}" if uid is None else uid}
        body, status = {"deleteOptions": options}, {"kind": "Status"}
        self.log(user, "create", "pods", pod, body, status, subresource="eviction", code=code)
        return self

    def delete(self, pod, verb="delete"):
        self.log(WORKER, verb, "pods", pod, {}, {"kind": "Status"})
        return self

    def gone(self, pod):
        self.log(KUBELET, "delete", "pods", pod, {"gracePeriodSeconds": 0}, copy(self.pods[pod]))
        return self

    def step(self, step, operation, node="n1", result="done", found=()):
        name = f"step-{operation}"
        pod: dict[str, Any] = {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {"gpumend.io/operation": operation, "gpumend.io/step": step},
            },
            "spec": {"nodeName": node},
        }
        self.log(WORKER, "create", "pods", name, copy(pod), copy(pod), code=201)
        said = {"operation": operation, "step": step, "result": result, "findings": found}
        message = json.dumps(said)
        terminated = {"terminated": {"exitCode": 0, "message": message}}
        pod["status"] = {"containerStatuses": [{"state": terminated}], "phase": "Succeeded"}
        self.log(KUBELET, "patch", "pods", name, {}, copy(pod), subresource="status")
        return self


def copy(thing):
    return json.loads(json.dumps(thing))


def repaired():
    """A run as it should be: seen, held, drained, reset, proven, given back, closed."""
    log = Log().node("n1", rack="a").node("n2", rack="a").pod("w1").pod("d1", owner="DaemonSet")
    log.condition().hold().change(mark={"id": "i1", "state": "owned", "undo": ["taint"]})
    log.seen_sick().evict("w1").gone("w1").step("reset-gpu", "i1-1-reset-gpu").step(
        "verify", "i1-2-verify"
    )
    return log.condition(status="True").release().close()
