"""The kinds that are served: names, scope, subresources. Custom kinds come from CRD objects."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object at one version.

    `status`: has a status subresource. `generation`: metadata.generation counts changes of spec.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    custom: bool = False
    short: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """As in `apiVersion`: `v1`, `policy/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """As in messages: `nodes`, `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_kind(self) -> str:
        """As in `kind` of a list."""
        return f"{self.kind}List"


_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

BUILT_IN = (
    Kind("", "v1", "nodes", "Node", namespaced=False, status=True, short=("no",)),
    Kind("", "v1", "namespaces", "Namespace", namespaced=False, status=True, short=("ns",)),
    Kind("", "v1", "pods", "Pod", status=True, generation=True, short=("po",)),
    Kind("", "v1", "configmaps", "ConfigMap", short=("cm",)),
    Kind("", "v1", "secrets", "Secret"),
    Kind("", "v1", "events", "Event", short=("ev",)),
    Kind("", "v1", "serviceaccounts", "ServiceAccount", short=("sa",)),
    Kind("coordination.k8s.io", "v1", "leases", "Lease"),
    Kind(
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        status=True,
        generation=True,
        short=("pdb",),
    ),
    Kind("apps", "v1", "daemonsets", "DaemonSet", status=True, generation=True, short=("ds",)),
    Kind(
        "apps", "v1", "deployments", "Deployment", status=True, generation=True, short=("deploy",)
    ),
    Kind("apps", "v1", "statefulsets", "StatefulSet", status=True, generation=True),
    Kind("apps", "v1", "replicasets", "ReplicaSet", status=True, generation=True),
    Kind("batch", "v1", "jobs", "Job", status=True, generation=True),
    Kind("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False, status=True),
    Kind(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Kind(_RBAC, "v1", "roles", "Role"),
    Kind(_RBAC, "v1", "rolebindings", "RoleBinding"),
    Kind(
        _ADMISSION,
        "v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        namespaced=False,
        status=True,
        generation=True,
    ),
    Kind(
        _ADMISSION,
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        namespaced=False,
        generation=True,
    ),
    Kind(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        status=True,
        generation=True,
        short=("crd",),
    ),
)

_ACCESS = "authorization.k8s.io"

REVIEWS = (
    Kind(_ACCESS, "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False),
    Kind(_ACCESS, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False),
    Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
)
"""Kinds that are answered and never stored: see `reviews.py`."""


class Kinds:
    """The kinds that are served now."""

    def __init__(self) -> None:
        self._all = {(k.group, k.version, k.plural): k for k in (*BUILT_IN, *REVIEWS)}

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._all.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind behind a path, None if it is not served."""
        return self._all.get((group, version, plural))

    def named(self, plural: str, group: str = "") -> Kind:
        """A kind that is surely there."""
        return next(k for k in self if k.plural == plural and k.group == group)

    def define(self, definition: dict[str, Any]) -> None:
        """Serve what a CustomResourceDefinition says."""
        for kind in custom_kinds(definition):
            self._all[kind.group, kind.version, kind.plural] = kind

    def forget(self, definition: dict[str, Any]) -> None:
        """Serve it no more."""
        for kind in custom_kinds(definition):
            self._all.pop((kind.group, kind.version, kind.plural), None)


def custom_kinds(definition: dict[str, Any]) -> list[Kind]:
    """The kinds of a CustomResourceDefinition, one a served version."""
    spec = definition["spec"]
    names = spec["names"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            status="status" in (version.get("subresources") or {}),
            generation=True,
            custom=True,
            short=tuple(names.get("shortNames") or ()),
        )
        for version in spec["versions"]
        if version.get("served", True)
    ]
