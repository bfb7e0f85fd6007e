"""Asking a pod's own responders to let it go: EvictionRequests, where the API server serves them.

The request has the pod's UID in its name, so that asking again finds it; a controller of the
cluster does the rest and, last of all, evicts. Where it cannot be asked so, the Eviction API is.
"""

from activities.pods import PlannedPod
from fleet.errors import Conflict, NotFound, Refused
from fleet.names import DOMAIN
from fleet.ports import Json, Kubernetes, PatchType

API = "/apis/lifecycle.k8s.io/v1alpha1"
REQUESTER = f"{DOMAIN}/remediation"


class EvictionRequests:
    """The requests for the pods of one step."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        self._kubernetes = kubernetes
        self._asked: dict[str, PlannedPod] = {}

    async def served(self) -> bool:
        """Whether this API server knows them at all."""
        try:
            await self._kubernetes.get(API)
        except NotFound:
            return False
        return True

    async def ask(self, pod: PlannedPod) -> bool:
        """Ask, or see that it was asked; False where the pod must be evicted by other means.

        Raises what the port raises when it may work later.
        """
        path = f"{API}/namespaces/{pod.namespace}/evictionrequests"
        try:
            await self._kubernetes.create(path, _body(pod))
        except Conflict:
            return not await self._failed(f"{path}/{_name(pod)}")
        except Refused:
            return False  # pods of a PodGroup, above all, cannot be asked so
        finally:
            self._asked[pod.uid] = pod
        return True

    async def withdraw(self) -> None:
        """Say of everything asked that it is wanted no more."""
        for pod in self._asked.values():
            path = f"{API}/namespaces/{pod.namespace}/evictionrequests/{_name(pod)}"
            try:
                wish: Json = {"spec": {"intent": "Withdrawn"}}
                await self._kubernetes.patch(path, wish, PatchType.MERGE)
            except Refused:
                continue  # it went with its pod
        self._asked.clear()

    async def _failed(self, path: str) -> bool:
        try:
            request = await self._kubernetes.get(path)
        except NotFound:
            return False
        conditions = (request.get("status") or {}).get("conditions") or ()
        return any(each["type"] == "Failed" and each["status"] == "True" for each in conditions)


def _name(pod: PlannedPod) -> str:
    return f"gpumend-{pod.uid}"


def _body(pod: PlannedPod) -> Json:
    return {
        "apiVersion": "lifecycle.k8s.io/v1alpha1",
        "kind": "EvictionRequest",
        "metadata": {"name": _name(pod), "namespace": pod.namespace},
        "spec": {
            "requester": REQUESTER,
            "intent": "Eviction",
            "target": {"pod": {"name": pod.name, "uid": pod.uid}},
        },
    }
