"""Reviews: who am I, may I do that, may they. Answered at once and never stored."""

from typing import Any

from simulator.apiserver.api import not_allowed, read
from simulator.apiserver.call import Call, User
from simulator.apiserver.kinds import Kind
from simulator.apiserver.rbac import Rbac
from simulator.apiserver.status import ApiError

Json = dict[str, Any]


def review(rbac: Rbac, call: Call, body: bytes) -> Json:
    """The review with its status; ApiError for one that asks nothing."""
    if call.verb != "create" or call.name:
        raise not_allowed()
    asked = read("application/json", body)
    head = {"kind": call.kind.kind, "apiVersion": call.kind.api_version, "metadata": {}}
    if call.kind.plural == "selfsubjectreviews":
        return {**head, "status": {"userInfo": _user_info(call.user)}}
    spec = asked.get("spec") or {}
    user = call.user
    if call.kind.plural == "subjectaccessreviews":
        user = User(spec.get("user", ""), groups=tuple(spec.get("groups") or ()))
    allowed = rbac.allows(_wanted(user, spec))
    return {**head, "spec": spec, "status": {"allowed": allowed}}


def _wanted(user: User, spec: Json) -> Call:
    wanted = spec.get("resourceAttributes")
    if not wanted:
        message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise ApiError(422, "Invalid", message)
    kind = Kind(wanted.get("group", ""), wanted.get("version", ""), wanted["resource"], "")
    return Call(
        user,
        wanted.get("verb", ""),
        kind,
        wanted.get("namespace", ""),
        wanted.get("name", ""),
        wanted.get("subresource", ""),
    )


def _user_info(user: User) -> Json:
    extra = {key: list(values) for key, values in user.extra.items()}
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in info.items() if value}
