"""May this user do this? The roles and bindings in the store decide, as with RBAC."""

from collections.abc import Iterator
from typing import Any

from simulator.apiserver.call import Call, User
from simulator.apiserver.status import ApiError, forbidden
from simulator.apiserver.store import Store

MASTERS = "system:masters"
_RBAC = "rbac.authorization.k8s.io"
_EVERYTHING = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
_BUILT_IN_ROLES = {"cluster-admin": _EVERYTHING}
_EVERYBODY = (("create", "selfsubjectaccessreviews"), ("create", "selfsubjectreviews"))
"""What the built-in role system:basic-user gives to all who are known."""
_PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_DISCOVERY_PATHS = ("/api", "/apis", "/openapi")


class Rbac:
    """Answers by the ClusterRoles, Roles and their bindings."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, call: Call) -> None:
        """403 unless a rule allows it."""
        if self.allows(call):
            return
        where = f'in the namespace "{call.namespace}"' if call.namespace else "at the cluster scope"
        why = (
            f'User "{call.user.name}" cannot {call.verb} resource "{call.resource}" in API group '
            f'"{call.kind.group}" {where}'
        )
        raise forbidden(call.kind, call.name, why)

    def allows(self, call: Call) -> bool:
        """Whether a rule allows it."""
        if MASTERS in call.user.groups or any(_allows(rule, call) for rule in self._rules(call)):
            return True
        known = "system:authenticated" in call.user.groups
        return known and (call.verb, call.resource) in _EVERYBODY

    def check_path(self, user: User, path: str) -> None:
        """403 unless the user may read a path that is no object."""
        head = "/" + path.strip("/").split("/")[0]
        known = MASTERS in user.groups or "system:authenticated" in user.groups
        if head in _PUBLIC_PATHS or (known and head in _DISCOVERY_PATHS):
            return
        message = f'forbidden: User "{user.name}" cannot get path "{path}"'
        raise ApiError(403, "Forbidden", message)

    def _rules(self, call: Call) -> Iterator[dict[str, Any]]:
        for namespace, binding in self._bindings(call.namespace):
            subjects = binding.get("subjects") or []
            if any(_is(subject, call.user, namespace) for subject in subjects):
                yield from self._role(binding["roleRef"], namespace)

    def _bindings(self, namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for stored in self._objects("clusterrolebindings").values():
            yield "", stored.object
        for (at, _), stored in self._objects("rolebindings").items():
            if namespace and at == namespace:
                yield at, stored.object

    def _role(self, reference: dict[str, str], namespace: str) -> list[dict[str, Any]]:
        name = reference["name"]
        clusterwide = reference["kind"] == "ClusterRole"
        objects = self._objects("clusterroles" if clusterwide else "roles")
        found = objects.get(("" if clusterwide else namespace, name))
        if found is None:
            return _BUILT_IN_ROLES.get(name, []) if clusterwide else []
        return found.object.get("rules") or []

    def _objects(self, plural: str) -> Any:
        return self._store.objects(self._store.kinds.named(plural, _RBAC))


def _is(subject: dict[str, str], user: User, namespace: str) -> bool:
    match subject["kind"]:
        case "User":
            return subject["name"] == user.name
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            where = subject.get("namespace", namespace)
            return user.name == f"system:serviceaccount:{where}:{subject['name']}"
    return False


def _allows(rule: dict[str, Any], call: Call) -> bool:
    names = rule.get("resourceNames") or []
    return (
        _has(rule.get("verbs"), call.verb)
        and _has(rule.get("apiGroups"), call.kind.group)
        and _has_resource(rule.get("resources"), call)
        and (not names or call.name in names)
    )


def _has(values: list[str] | None, value: str) -> bool:
    return values is not None and (value in values or "*" in values)


def _has_resource(values: list[str] | None, call: Call) -> bool:
    return _has(values, call.resource) or f"*/{call.subresource}" in (values or [])
