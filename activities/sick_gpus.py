"""Which pods hold the GPU that is sick, where that can be told.

Kubernetes says of a container which devices it was given (`allocatedResourcesStatus`, by UUID); a
fault says by its keyed id which GPU it is about. With the key both meet. In doubt a pod holds it.
"""

import base64
import binascii
from collections.abc import Iterable

from activities.pods import may_hold_gpu
from fleet.errors import NotFound
from fleet.names import NAMESPACE
from fleet.node import Manifest
from fleet.ports import Kubernetes
from fleet.request import StepRequest
from probes.parts import keyed_id

KEY_SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/gpumend-part-key"
_GPU = "nvidia.com/gpu"


class SickGpus:
    """The GPUs that one request is about, by their keyed ids; none where they cannot be told."""

    def __init__(self, ids: Iterable[str], key: bytes) -> None:
        self._ids = frozenset(ids)
        self._key = key

    def held_by(self, pod: Manifest) -> bool | None:
        """Whether the pod holds one of them; None where nobody says."""
        if not may_hold_gpu(pod):
            return False
        held = _devices(pod)
        if not held or not self._ids or not self._key:
            return None
        ids = [keyed_id(self._key, each) for each in held]
        if self._ids & set(ids):
            return True
        return None if "" in ids else False

    def spared(self, pods: Iterable[Manifest]) -> frozenset[str]:
        """UIDs of the pods that surely hold none of them."""
        return frozenset(each["metadata"]["uid"] for each in pods if self.held_by(each) is False)


def told(pods: Iterable[Manifest]) -> bool:
    """Whether one of the pods says which GPUs it holds; else the key would tell nothing."""
    return any(may_hold_gpu(each) and _devices(each) for each in pods)


async def sick_gpus(kubernetes: Kubernetes, request: StepRequest) -> SickGpus:
    """The GPUs of a request. One fault without an id, or no key, and nothing can be told."""
    ids = [each.id if each.part.startswith("gpu:") else "" for each in request.faults]
    if not ids or "" in ids:
        return SickGpus((), b"")
    try:
        secret = await kubernetes.get(KEY_SECRET)
        key = base64.b64decode((secret.get("data") or {}).get("key", ""), validate=True)
    except (NotFound, binascii.Error):
        return SickGpus((), b"")
    return SickGpus(ids, key.strip())


def _devices(pod: Manifest) -> tuple[str, ...] | None:
    """UUIDs of all GPUs that its containers were given; None where one does not say."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    given = {each["name"]: each for each in status.get("containerStatuses") or ()}
    found: list[str] = []
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
        gpus = [name for name in asked if name.startswith("nvidia.com/")]
        if not gpus:
            continue
        said = given.get(container["name"], {}).get("allocatedResourcesStatus") or ()
        devices = [
            one["resourceID"] for each in said if each["name"] == _GPU for one in each["resources"]
        ]
        if gpus != [_GPU] or len(devices) != int(asked[_GPU]):
            return None
        found += [each.split("::")[0] for each in devices]
    return tuple(found) or None
