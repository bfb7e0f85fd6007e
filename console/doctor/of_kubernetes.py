"""Is this cluster fit for gpumend, and does gpumend run in it? Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from console.doctor.item import Item, State, note, ok, some, unknown, wrong
from console.doctor.neighbours import controllers, daemon_sets
from console.doctor.rights import Answer
from console.doctor.rights import judge as judge_rights
from console.table import length
from fleet.mark import MarkState
from fleet.names import NAMESPACE, agent_lease
from fleet.node import Manifest, NodeState

AGENT_SILENT = timedelta(minutes=6)
"""As the watcher has it: three renewals missed."""
LEADER_SILENT = timedelta(minutes=1)
"""A leader renews every few seconds, and gives up long before."""
TAKEN_UP = timedelta(minutes=5)
"""A hold that is pending for longer is not taken up: Temporal is away for the watcher."""
PART_KEY = "gpumend-part-key"
FENCE = "gpumend-agent"
_GPU = "nvidia.com/gpu"
_LABELS = ("nvidia.com/gpu.present", "gpumend.io/pool")
"""By these the agent's DaemonSet chooses its nodes."""

Seen = bool | None
"""Whether something is there; None: we may not look."""


@dataclass(frozen=True, slots=True)
class KubernetesFacts:
    """One cluster. What we may not read is None, and named in `unread`.

    `leases` are renewals by the Lease's name; `breakers` the circuits that are not closed.
    """

    version: str
    user: str = ""
    namespace: Seen = None
    part_key: Seen = None
    fence: Seen = None
    nodes: tuple[NodeState, ...] | None = None
    leases: Mapping[str, datetime | None] | None = None
    sets: tuple[Manifest, ...] | None = None
    deployments: tuple[Manifest, ...] | None = None
    kinds: tuple[str, ...] | None = None
    rights: tuple[Answer, ...] = ()
    breakers: Mapping[str, str] | None = field(default=None)


def judge(facts: KubernetesFacts, now: datetime) -> Iterator[Item]:
    """Everything, in the order in which one would mend it."""
    who = f", you are {facts.user}" if facts.user else ""
    yield ok("kubernetes", f"server {facts.version}{who}")
    yield _there(
        "namespace", facts.namespace, NAMESPACE, "kubectl apply -f deploy/engine-rbac.yaml"
    )
    yield from judge_rights(facts.rights)
    yield _there("agent fence", facts.fence, FENCE, "kubectl apply -f deploy/agent-rbac.yaml")
    make_key = f"kubectl -n {NAMESPACE} create secret generic {PART_KEY}"
    secret = f"{make_key} --from-literal=key=$(openssl rand -hex 32)"
    yield _there("part key", facts.part_key, f"secret {PART_KEY}", secret)
    yield from _agents(facts, now)
    yield _leader(facts, now)
    yield from _marks(facts, now)
    yield from _breakers(facts)
    yield from _neighbours(facts)


def _there(subject: str, seen: Seen, what: str, mend: str) -> Item:
    if seen is None:
        return unknown(subject, f"you may not look whether {what} is there")
    return ok(subject, f"{what} is there") if seen else wrong(subject, f"{what} is missing", mend)


def is_gpu_node(node: NodeState) -> bool:
    """Whether an agent belongs there."""
    offers = node.allocatable.get(_GPU, "0") not in ("", "0")
    return offers or any(node.labels.get(label) for label in _LABELS)


def _agents(facts: KubernetesFacts, now: datetime) -> Iterator[Item]:
    if facts.nodes is None or facts.leases is None:
        yield unknown("agents", "you may not read nodes or Leases")
        return
    wanted = [each.identity.name for each in facts.nodes if is_gpu_node(each)]
    renewed = {name: facts.leases.get(agent_lease(name)) for name in wanted}
    never = [name for name, at in renewed.items() if at is None]
    silent = [name for name, at in renewed.items() if at and now - at > AGENT_SILENT]
    look = f"kubectl -n {NAMESPACE} get pods -o wide -l app.kubernetes.io/component=agent"
    if not wanted:
        says = f"no node offers {_GPU} or is labelled {' or '.join(_LABELS)}"
        yield note("agents", says, "label the GPU nodes, or install a device plugin")
    elif never or silent:
        parts = [f"never heard of on {some(never)}"] if never else []
        parts += [f"silent for {length(AGENT_SILENT)} and more on {some(silent)}"] if silent else []
        install = "kubectl apply -f deploy/agent.yaml" if len(never) == len(wanted) else look
        yield wrong("agents", "; ".join(parts), install)
    else:
        yield ok("agents", f"all {len(wanted)} speak")


def _leader(facts: KubernetesFacts, now: datetime) -> Item:
    if facts.leases is None:
        return unknown("watcher", "you may not read Leases")
    renewed = facts.leases.get("watcher")
    if renewed and now - renewed <= LEADER_SILENT:
        return ok("watcher", "one leads")
    since = f"nobody leads since {length(now - renewed)}" if renewed else "none has ever led"
    look = f"kubectl -n {NAMESPACE} get pods -l app=gpumend-watcher"
    return wrong("watcher", f"{since}: sick nodes are not held", look)


def _marks(facts: KubernetesFacts, now: datetime) -> Iterator[Item]:
    if facts.nodes is None:
        return
    broken = [each.identity.name for each in facts.nodes if each.mark_problem]
    if broken:
        look = f"kubectl get node {broken[0]} -o yaml  # take annotation gpumend.io/incident off"
        yield wrong("marks", f"cannot be read on {some(broken)}: nothing is done there", look)
    pending = [
        each.identity.name
        for each in facts.nodes
        if each.mark and each.mark.state is MarkState.PENDING and now - each.mark.opened > TAKEN_UP
    ]
    held = sum(each.hold is not None for each in facts.nodes)
    if pending:
        says = f"not taken up for {length(TAKEN_UP)} and more: {some(pending)}"
        yield wrong(
            "holds", says, "kubectl -n gpumend logs deploy/watcher  # can it reach Temporal?"
        )
    else:
        yield ok("holds", f"{held} nodes are held")


def _breakers(facts: KubernetesFacts) -> Iterator[Item]:
    for scope, why in (facts.breakers or {}).items():
        command = f"gpumend close-breaker {scope} --reason ...  # once you know why"
        yield Item(f"breaker {scope}", State.WRONG, why, command)


def _neighbours(facts: KubernetesFacts) -> Iterator[Item]:
    if facts.sets is None:
        yield unknown("daemonsets", "you may not list them")
    else:
        yield from daemon_sets(facts.sets)
    workloads: Sequence[Manifest] = (*(facts.deployments or ()), *(facts.sets or ()))
    yield from controllers(workloads, facts.kinds or ())
