"""What a client asks first: versions, groups and resources."""

from typing import Any

from simulator.apiserver.kinds import Kind, Kinds
from simulator.apiserver.status import no_such_path

VERSION = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.2",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "gpumend/simulator",
}
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def discover(kinds: Kinds, path: str) -> dict[str, Any]:
    """The answer to a GET of `/version`, `/api`, `/apis` or a group version below them."""
    parts = path.strip("/").split("/")
    match parts:
        case ["version"]:
            return dict(VERSION)
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(kinds, name) for name in _groups(kinds)]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", name] if name in _groups(kinds):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(kinds, name)}
        case ["api", version]:
            return _resources(kinds, "", version)
        case ["apis", group, version]:
            return _resources(kinds, group, version)
    raise no_such_path()


def _groups(kinds: Kinds) -> list[str]:
    return sorted({kind.group for kind in kinds if kind.group})


def _group(kinds: Kinds, name: str) -> dict[str, Any]:
    names = sorted({kind.version for kind in kinds if kind.group == name})
    versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in names]
    return {"name": name, "versions": versions, "preferredVersion": versions[-1]}


def _resources(kinds: Kinds, group: str, version: str) -> dict[str, Any]:
    found = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not found:
        raise no_such_path()
    resources = [entry for kind in found for entry in _entries(kind)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": resources,
    }


def _entries(kind: Kind) -> list[dict[str, Any]]:
    entry = {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
    }
    entries = [{**entry, "verbs": VERBS, "shortNames": list(kind.short)}]
    if kind.status:
        status = {**entry, "name": f"{kind.plural}/status", "singularName": ""}
        entries.append({**status, "verbs": ["get", "patch", "update"]})
    if (kind.plural, kind.group) == ("pods", ""):
        eviction = {**entry, "name": "pods/eviction", "singularName": "", "kind": "Eviction"}
        entries.append({**eviction, "group": "policy", "version": "v1", "verbs": ["create"]})
    if (kind.plural, kind.group) == ("serviceaccounts", ""):
        token = {
            **entry,
            "name": "serviceaccounts/token",
            "singularName": "",
            "kind": "TokenRequest",
        }
        group = {"group": "authentication.k8s.io", "version": "v1"}
        entries.append({**token, **group, "verbs": ["create"]})
    return entries
