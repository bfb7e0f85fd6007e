"""One request, understood: who wants to do what to which object."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.apiserver.kinds import Kind
from simulator.apiserver.status import ApiError, no_such_path


@dataclass(frozen=True, slots=True)
class User:
    """Who calls. `extra` carries what a token is bound to, as Kubernetes names it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class Call:
    """A request for objects. `name` is empty for collections; `query` has single values."""

    user: User
    verb: str
    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be stored."""
        value = self.query.get("dryRun", "")
        if value not in ("", "All"):
            message = (
                f' "" is invalid: dryRun: Unsupported value: "{value}": supported values: "All"'
            )
            raise ApiError(422, "Invalid", message)
        return value == "All"

    @property
    def resource(self) -> str:
        """As in messages and rules: `nodes`, `nodes/status`."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


Place = tuple[str, str, str, str, str, str]  # group, version, namespace, plural, name, subresource


def place(path: str) -> Place:
    """Where in the API a path leads; 404 if it has no such shape."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        raise no_such_path()
    plural, name, subresource = (*rest, "", "")[:3]
    return group, version, namespace, plural, name, subresource


def verb_of(method: str, name: str, query: Mapping[str, str]) -> str:
    """The verb of an access rule for an HTTP method."""
    match method:
        case "GET" | "HEAD":
            if query.get("watch", "") in ("1", "true"):
                return "watch"
            return "get" if name else "list"
        case "DELETE":
            return "delete" if name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}[method]


Admit = Any  # (Call, object after, object before) -> None, raises ApiError
