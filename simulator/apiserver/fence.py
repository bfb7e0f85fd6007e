"""Keeps the agents of nodes to their own Node, as `deploy/agent-rbac.yaml` does for real.

The emulated server does not evaluate CEL. It knows this one policy by its name, and holds to it
while the policy and its binding are there; a contract test keeps the two alike.
"""

from collections.abc import Iterator
from typing import Any

from simulator.apiserver.call import Call
from simulator.apiserver.status import ApiError
from simulator.apiserver.store import Store

POLICY = "gpumend-agent"
AGENT = "system:serviceaccount:gpumend:gpumend-agent"
PREFIX = "gpumend.io/"
LEASE = "agent-"
"""Before the name of the node, the name of its agent's Lease."""
_NODE_NAME = "authentication.kubernetes.io/node-name"
_ADMISSION = "admissionregistration.k8s.io"
_META = ("labels", "annotations", "finalizers", "ownerReferences")
_STATUS = ("capacity", "allocatable", "addresses", "nodeInfo")
OWN_NODE = "an agent may write its own Node only"
OWN_LEASE = "an agent may write its own Lease only"
NO_METADATA = "an agent may not change labels, annotations, finalizers or owners"
OWN_CONDITIONS = "an agent may change gpumend.io/* conditions only"
NO_MACHINE = "an agent may not change what the Node is or offers"


class Fence:
    """Refuses the writes of an agent that the policy would refuse."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, call: Call, after: dict[str, Any], before: dict[str, Any] | None) -> None:
        """403 if the write is outside the fence."""
        if call.user.name != AGENT or not self._stands():
            return
        own = (call.user.extra.get(_NODE_NAME) or ("",))[0]
        why: str | None = None
        if call.kind.resource == "nodes" and before is not None and after:
            why = next(_node_refusals(own, after, before), None)
        elif call.kind.plural == "leases" and after and after["metadata"]["name"] != LEASE + own:
            why = OWN_LEASE
        if why:
            raise _denied(call, why)

    def _stands(self) -> bool:
        kinds = self._store.kinds
        policies = kinds.named("validatingadmissionpolicies", _ADMISSION)
        bindings = kinds.named("validatingadmissionpolicybindings", _ADMISSION)
        return self._store.get(policies, "", POLICY) is not None and any(
            binding.object["spec"]["policyName"] == POLICY
            and "Deny" in binding.object["spec"]["validationActions"]
            for binding in self._store.objects(bindings).values()
        )


def _node_refusals(own: str, after: dict[str, Any], before: dict[str, Any]) -> Iterator[str]:
    if before["metadata"]["name"] != own:
        yield OWN_NODE
    if _part(after, "metadata", _META) != _part(before, "metadata", _META):
        yield NO_METADATA
    if _foreign_conditions(after) != _foreign_conditions(before):
        yield OWN_CONDITIONS
    same_machine = _part(after, "status", _STATUS) == _part(before, "status", _STATUS)
    if not same_machine or after.get("spec") != before.get("spec"):
        yield NO_MACHINE


def _part(node: dict[str, Any], half: str, fields: tuple[str, ...]) -> list[Any]:
    return [(node.get(half) or {}).get(field) for field in fields]


def _foreign_conditions(node: dict[str, Any]) -> list[dict[str, Any]]:
    conditions = (node.get("status") or {}).get("conditions") or []
    return [c for c in conditions if not c["type"].startswith(PREFIX)]


def _denied(call: Call, why: str) -> ApiError:
    text = f"ValidatingAdmissionPolicy '{POLICY}' with binding '{POLICY}' denied request: {why}"
    details = {
        "name": call.name,
        "group": call.kind.group,
        "kind": call.kind.plural,
        "causes": [{"message": text}],
    }
    message = f'{call.kind.resource} "{call.name}" is forbidden: {text}'
    return ApiError(403, "Forbidden", message, {k: v for k, v in details.items() if v})
