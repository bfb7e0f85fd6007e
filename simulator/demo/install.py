"""Puts the engine and some workloads into an empty cluster: accounts, rights, budgets of pods.

The rights of watcher, worker and agents, and the policy that fences each agent to its own Node,
are those that we ship: a call too many fails here as it would in somebody's cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.client import Api, ApiError
from simulator.controllers.owners import Daemon, Workload
from simulator.demo.fleet import Load

Json = dict[str, Any]

NAMESPACE = "gpumend"
ENGINE = ("watcher", "worker")
AGENT = "gpumend-agent"
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RIGHTS = ("engine-rbac.yaml", "agent-rbac.yaml")
WORKLOADS_NAMESPACE = "default"
POOL_LABEL = "gpumend.io/pool"
TOKEN_SECONDS = 86_400
RENEW_SECONDS = 10
"""Between two signs of life of an agent: much oftener than elsewhere, for a run is short."""
CHECK_SECONDS = 3_600
"""Between two rounds of all checks while nothing is wrong: none, since the rounds of thirty agents
would be most of what two cores do. What breaks elsewhere is said in the kernel log."""
WATCHED_SECONDS = 5
"""The same on the machines of a script whose troubles no log tells of."""
ACCOUNT_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def _rule(group: str, resources: str, verbs: str) -> Json:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


KUBELET_RULES = [
    _rule("", "nodes nodes/status", "get list watch create update patch"),
    _rule("", "pods", "get list watch delete"),
    _rule("", "pods/status", "get update patch"),
    _rule("", "serviceaccounts/token", "create"),
    _rule("", "events", "create"),
    _rule("coordination.k8s.io", "leases", "get list watch create update patch"),
]
"""For the group of nodes, where no Node authorizer knows what a kubelet may do."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Tokens of the engine's accounts by name, and what the controllers are to keep running."""

    tokens: dict[str, str]
    workloads: tuple[Workload, ...]
    agents: Daemon


async def install(
    admin: Api, loads: Sequence[Load], watched: Sequence[str], node_rights: bool, ca: bool
) -> Installed:
    """Create everything.

    On `watched` nodes agents look often. `node_rights`: kubelets need a role; `ca`: agents speak
    https.
    """
    for manifests in RIGHTS:
        await _apply(admin, (DEPLOY / manifests).read_text())
    if node_rights:
        await _grant_kubelets(admin)
    workloads = [await _workload(admin, load) for load in loads]
    for load in loads:
        if load.may_miss is not None:
            await _protect(admin, load.name, load.may_miss)
    tokens = {account: await _token(admin, account) for account in ENGINE}
    return Installed(tokens, tuple(workloads), await _agents(admin, watched, ca))


async def _apply(admin: Api, manifests: str) -> None:
    """Create what manifests say, as `kubectl apply` would in an empty cluster."""
    for manifest in yaml.safe_load_all(manifests):
        group = manifest["apiVersion"]
        namespace = manifest["metadata"].get("namespace")
        base = f"/apis/{group}" if "/" in group else f"/api/{group}"
        place = f"/namespaces/{namespace}" if namespace else ""
        await _create(admin, f"{base}{place}/{_plural(manifest['kind'])}", manifest)


def _plural(kind: str) -> str:
    plain = kind.lower()
    return f"{plain[:-1]}ies" if plain.endswith("y") else f"{plain}s"


async def _agents(admin: Api, watched: Sequence[str], ca: bool) -> Daemon:
    """The agent as a DaemonSet has it."""
    spec = _agent_spec(admin.url, ca)
    uid = await _owner(admin, NAMESPACE, "daemonsets", "agent", {"template": {"spec": spec}})
    often = {node: ("--check-every", str(WATCHED_SECONDS)) for node in watched}
    return Daemon("agent", uid, NAMESPACE, spec, often)


def _agent_spec(url: str, ca: bool) -> Json:
    command = ["gpumend", "probe", "--node", "{node}", "--root", "/host", "--api-server", url]
    command += ["--token-file", f"{ACCOUNT_MOUNT}/token", "--renew-every", str(RENEW_SECONDS)]
    command += ["--check-every", str(CHECK_SECONDS)]
    if ca:
        command += ["--ca-file", f"{ACCOUNT_MOUNT}/ca.crt"]
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}}
    container = {
        "name": "agent",
        "image": "gpumend",
        "command": command,
        "volumeMounts": [
            {"name": "host", "mountPath": "/host"},
            {"name": "account", "mountPath": ACCOUNT_MOUNT},
        ],
    }
    return {
        "serviceAccountName": AGENT,
        "hostPID": True,
        "containers": [container],
        "volumes": [
            {"name": "host", "hostPath": {"path": "/"}},
            {"name": "account", "projected": {"sources": [token]}},
        ],
    }


async def _workload(admin: Api, load: Load) -> Workload:
    container = {"name": "main", "image": "registry.example/workload:1"}
    spec = {"replicas": load.replicas, "template": {"spec": {"containers": [container]}}}
    uid = await _owner(admin, WORKLOADS_NAMESPACE, "replicasets", load.name, spec)
    pool = {POOL_LABEL: load.pool} if load.pool else {}
    node = {"kubernetes.io/hostname": load.node} if load.node else {}
    on = {**pool, **node}
    return Workload(load.name, uid, load.replicas, load.gpus, labels=load.labels, on=on)


async def _owner(admin: Api, namespace: str, kind: str, name: str, spec: Json) -> str:
    """An owner of pods, for which our controllers act; returns its UID."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, **spec["template"]}
    body = {
        "metadata": {"name": name},
        "spec": {**spec, "selector": {"matchLabels": labels}, "template": template},
    }
    created = await admin.create(f"/apis/apps/v1/namespaces/{namespace}/{kind}", body)
    return str(created["metadata"]["uid"])


async def _grant_kubelets(admin: Api) -> None:
    group = {"kind": "Group", "name": "system:nodes", "apiGroup": "rbac.authorization.k8s.io"}
    await _bind(admin, "clusterrole", "", "simulated-kubelets", KUBELET_RULES, group)


async def _bind(
    admin: Api, kind: str, place: str, name: str, rules: list[Json], subject: Json
) -> None:
    role = {"metadata": {"name": name}, "rules": rules}
    await _create(admin, f"{_RBAC}{place}/{kind}s", role)
    reference = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole" if kind == "clusterrole" else "Role",
        "name": name,
    }
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    await _create(admin, f"{_RBAC}{place}/{kind}bindings", binding)


async def _protect(admin: Api, name: str, may_miss: int) -> None:
    """A PDB that lets so many of its pods be missing at a time."""
    body = {
        "metadata": {"name": name},
        "spec": {"maxUnavailable": may_miss, "selector": {"matchLabels": {"app": name}}},
    }
    path = f"/apis/policy/v1/namespaces/{WORKLOADS_NAMESPACE}/poddisruptionbudgets"
    await _create(admin, path, body)


async def _token(admin: Api, account: str) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    answer = await admin.create(path, {"spec": {"expirationSeconds": TOKEN_SECONDS}})
    return str(answer["status"]["token"])


async def _create(admin: Api, path: str, body: Json) -> None:
    try:
        await admin.create(path, body)
    except ApiError as error:
        if error.code != 409:
            raise
