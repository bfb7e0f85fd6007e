"""Every way to say no, in the shape in which Kubernetes says it (a `Status` object)."""

from collections.abc import Sequence
from typing import Any

from simulator.apiserver.kinds import Kind

OPTIMISTIC_LOCK = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class ApiError(Exception):
    """An answer that is a failure. `details` is the `details` of the Status, without nulls."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        retry_after_s: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.details = dict(details or {})
        if retry_after_s:
            self.details["retryAfterSeconds"] = retry_after_s

    def status(self) -> dict[str, Any]:
        """The Status object of this answer."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        return {**body, "code": self.code}


def _details(kind: Kind, name: str) -> dict[str, Any]:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}


def not_found(kind: Kind, name: str) -> ApiError:
    """404: no such object."""
    message = f'{kind.resource} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(kind, name))


def no_such_path() -> ApiError:
    """404: no such kind or path at all."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(kind: Kind, name: str) -> ApiError:
    """409: an object of this name is there."""
    message = f'{kind.resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(kind, name))


def conflict(kind: Kind, name: str, why: str = OPTIMISTIC_LOCK) -> ApiError:
    """409: a resourceVersion or UID that was asked for is not the one of the object."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(kind, name))


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[dict[str, str]] = ()) -> ApiError:
    """403: not allowed for this user, or not now."""
    quoted = f' "{name}"' if name else ""
    details = _details(kind, name)
    if causes:
        details["causes"] = list(causes)
    return ApiError(403, "Forbidden", f"{kind.resource}{quoted} is forbidden: {why}", details)


def bad_request(message: str) -> ApiError:
    """400: the request cannot be understood."""
    return ApiError(400, "BadRequest", message)


def invalid(kind: Kind, name: str, causes: Sequence[dict[str, str]]) -> ApiError:
    """422: the object breaks rules; `causes` are `{reason, message, field}`, at least one."""
    assert causes
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    group_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {**_details(kind, name), "kind": kind.kind, "causes": list(causes)}
    return ApiError(422, "Invalid", f'{group_kind} "{name}" is invalid: {joined}', details)


def expired(message: str) -> ApiError:
    """410: the history that was asked for is gone."""
    return ApiError(410, "Expired", message)


def success(kind: Kind, name: str, uid: str) -> dict[str, Any]:
    """The Status that answers a delete which is complete."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(kind, name), "uid": uid},
    }
