"""Create, replace and patch: what a write must respect before it is stored.

Deleting is in `deletion.py`, evicting in `eviction.py`, reading in `listing.py`.
"""

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from simulator.apiserver import defaults, validation
from simulator.apiserver.call import Call
from simulator.apiserver.history import Stored
from simulator.apiserver.isolation import kept_apart, pod_spec_causes
from simulator.apiserver.kinds import Kind
from simulator.apiserver.patch import json_patch, merge_patch
from simulator.apiserver.schema import ShapeError, shaped, type_of
from simulator.apiserver.status import (
    ApiError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from simulator.apiserver.store import Store
from simulator.apiserver.strategic import strategic_patch

Admit = Callable[[Call, dict[str, Any], dict[str, Any] | None], None]
Clock = Callable[[], datetime]

GENERATE_TRIES = 8
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_CONDITIONAL = {  # a PUT of these must say which version it replaces
    "poddisruptionbudgets",
    "leases",
    "customresourcedefinitions",
}


class Registry:
    """The writes of whole objects. `admit` may refuse any of them."""

    def __init__(self, store: Store, now: Clock, admit: Admit) -> None:
        self._store = store
        self._now = now
        self._admit = admit

    def existing(self, call: Call) -> Stored:
        """The object that a request names; 404 if there is none."""
        stored = self._store.get(call.kind, call.namespace, call.name)
        if stored is None:
            raise not_found(call.kind, call.name)
        return stored

    def create(self, call: Call, body: dict[str, Any]) -> Stored:
        """Store a new object."""
        kind = call.kind
        self._check_namespace(call, body)
        with _shape_is_asked(kind):
            content = _shape(kind, self._named(call, body))
        content = defaults.without_false(kind, defaults.created(kind, content, self._now()))
        name = content["metadata"]["name"]
        _refuse(kind, name, validation.check(kind, content))
        self._admit(call, content, None)
        if self._store.get(kind, call.namespace, name):
            raise already_exists(kind, name)
        stored = self._put(call, kind, content)
        if kind.plural != "customresourcedefinitions" or call.dry_run:
            return stored
        self._put(call, kind, defaults.established(stored.object, self._now()))
        return stored

    def update(self, call: Call, body: dict[str, Any]) -> Stored:
        """Replace an object, or its status."""
        before = self.existing(call)
        meta = body.get("metadata") or {}
        if (uid := meta.get("uid")) and uid != before.meta["uid"]:
            why = (
                f"Precondition failed: UID in precondition: {uid}, "
                f"UID in object meta: {before.meta['uid']}"
            )
            raise conflict(call.kind, call.name, why)
        needs_version = call.kind.custom or call.kind.plural in _CONDITIONAL
        if needs_version and not meta.get("resourceVersion"):
            why = "must be specified for an update"
            cause = validation.bad_value("metadata.resourceVersion", 0, why)
            raise invalid(call.kind, call.name, [cause])
        with _shape_is_asked(call.kind):
            return self._replace(call, before, body)

    def patch(self, call: Call, content_type: str, body: Any) -> Stored:
        """Change an object, or its status, by a patch."""
        before = self.existing(call)
        kind = call.kind
        match content_type:
            case "application/json-patch+json":
                after = json_patch(before.object, body)
            case "application/merge-patch+json":
                after = merge_patch(before.object, _object(body))
            case "application/strategic-merge-patch+json" if not kind.custom:
                after = strategic_patch(type_of(kind.kind), before.object, _object(body))
            case _:
                raise _unsupported(kind)
        try:
            return self._replace(call, before, _object(after))
        except ShapeError as error:
            cause = validation.bad_value("patch", "", str(error))
            raise ApiError(
                422, "Invalid", f' "" is invalid: {error}', {"causes": [cause]}
            ) from error

    def _replace(self, call: Call, before: Stored, body: dict[str, Any]) -> Stored:
        kind = call.kind
        self._check_identity(call, before, body)
        content = kept_apart(
            kind, call.subresource, _shape(kind, body, before.object), before.object
        )
        content = defaults.without_false(kind, content)
        _refuse(kind, call.name, self._causes(call, content, before))
        self._admit(call, content, before.object)
        if content == before.object:
            return before
        if kind.generation and _differs(content, before.object):
            generation = before.meta.get("generation", 0) + 1
            content = {**content, "metadata": {**content["metadata"], "generation": generation}}
        return self._put(call, kind, content)

    def _causes(self, call: Call, content: dict[str, Any], before: Stored) -> list[dict[str, str]]:
        causes = validation.check(call.kind, content)
        if content["metadata"]["uid"] != before.meta["uid"]:
            uid = content["metadata"]["uid"]
            causes.append(validation.bad_value("metadata.uid", uid, "field is immutable"))
        if call.kind.plural == "pods" and not call.kind.custom and not call.subresource:
            causes += pod_spec_causes(before.object["spec"], content["spec"])
        return causes

    def _check_identity(self, call: Call, before: Stored, body: dict[str, Any]) -> None:
        meta = _object(body.get("metadata"))
        name = meta.get("name", "")
        if name != call.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({call.name})"
            )
        _check_body_kind(call.kind, body)
        version = meta.get("resourceVersion")
        if version and version != before.meta["resourceVersion"]:
            raise conflict(call.kind, call.name)

    def _put(self, call: Call, kind: Kind, content: dict[str, Any]) -> Stored:
        meta = content["metadata"]
        if meta.get("deletionTimestamp") and not _held(kind, meta):
            before = self.existing(call)
            return before if call.dry_run else self._store.remove(kind, before)
        if call.dry_run:
            return Stored(kind, content, self._store.version)
        return self._store.put(kind, content)

    def _named(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        _check_body_kind(call.kind, body)
        meta = dict(_object(body.get("metadata", {})))
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._generate(call, meta["generateName"])
        if not meta.get("name"):
            cause = validation.required("metadata.name", "name or generateName is required")
            raise invalid(call.kind, "", [cause])
        if meta.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if call.namespace:
            meta["namespace"] = call.namespace
        return {**body, "metadata": meta}

    def _generate(self, call: Call, prefix: str) -> str:
        for _ in range(GENERATE_TRIES):
            name = defaults.generated_name(prefix)
            if self._store.get(call.kind, call.namespace, name) is None:
                return name
        raise ApiError(409, "AlreadyExists", f"no free name found for {prefix!r}")

    def _check_namespace(self, call: Call, body: dict[str, Any]) -> None:
        meta = body.get("metadata") or {}
        if (given := meta.get("namespace")) and given != call.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        if not call.namespace:
            return
        namespaces = self._store.kinds.named("namespaces")
        found = self._store.get(namespaces, "", call.namespace)
        if found is None:
            raise not_found(namespaces, call.namespace)
        if found.meta.get("deletionTimestamp"):
            why = (
                "unable to create new content in namespace "
                f"{call.namespace} because it is being terminated"
            )
            text = f"namespace {call.namespace} is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": text,
                "field": "metadata.namespace",
            }
            raise forbidden(call.kind, meta.get("name", ""), why, [cause])


def _shape(kind: Kind, body: dict[str, Any], known: dict[str, Any] | None = None) -> dict[str, Any]:
    type_ = None if kind.custom else type_of(kind.kind)
    return body if type_ is None else shaped(type_, body, known=known)


@contextlib.contextmanager
def _shape_is_asked(kind: Kind) -> Iterator[None]:
    """A body of the wrong shape is a bad request (the result of a patch is merely invalid)."""
    try:
        yield
    except ShapeError as error:
        message = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
        raise bad_request(message + str(error)) from error


def _refuse(kind: Kind, name: str, causes: list[dict[str, str]]) -> None:
    if causes:
        raise invalid(kind, name, causes)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise bad_request(f"an object is wanted, {type(value).__name__} was given")
    return value


def _check_body_kind(kind: Kind, body: dict[str, Any]) -> None:
    if body.get("kind", kind.kind) != kind.kind:
        raise bad_request(
            f'{body["kind"]} in version "{body.get("apiVersion", "")}" cannot be handled as a '
            f'{kind.kind}: no kind "{body["kind"]}" is registered'
        )
    if body.get("apiVersion", kind.api_version) != kind.api_version:
        raise bad_request(
            f"the API version in the data ({body['apiVersion']}) does not match the expected "
            f"API version ({kind.api_version})"
        )


def _differs(content: dict[str, Any], before: dict[str, Any]) -> bool:
    apart = ("metadata", "status")
    return any(
        content.get(key) != before.get(key) for key in {*content, *before} if key not in apart
    )


def _held(kind: Kind, meta: dict[str, Any]) -> bool:
    """Whether something still keeps an object that is being deleted."""
    return bool(
        meta.get("finalizers")
        or meta.get("deletionGracePeriodSeconds")
        or (kind.plural == "namespaces" and not kind.custom)
    )


def _unsupported(kind: Kind) -> ApiError:
    known = [JSON_PATCH, MERGE_PATCH] + ([] if kind.custom else [STRATEGIC_PATCH])
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(known)
    )
    return ApiError(415, "UnsupportedMediaType", message)
