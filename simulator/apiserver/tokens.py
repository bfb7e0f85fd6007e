"""Who a bearer token stands for: a static file, and the tokens of service accounts."""

import base64
import binascii
import csv
import hashlib
import hmac
import json
import secrets
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from simulator.apiserver.call import ANONYMOUS, Call, User
from simulator.apiserver.defaults import rfc3339
from simulator.apiserver.history import Stored
from simulator.apiserver.status import ApiError, bad_request, not_found
from simulator.apiserver.store import Store

DEFAULT_LIFE_S = 3600
SHORTEST_LIFE_S = 600
_EXTRA = "authentication.kubernetes.io"
UNAUTHORIZED = ApiError(401, "Unauthorized", "Unauthorized")


def read_static(path: Path) -> dict[str, User]:
    """Users by token, from `token,user,uid,"group,group"` lines."""
    users = {}
    with path.open(newline="") as file:
        for row in csv.reader(file):
            if row:
                token, name, uid, groups = (*row, "")[:4]
                wanted = tuple(group for group in groups.split(",") if group)
                users[token] = User(name, uid, (*wanted, "system:authenticated"))
    return users


def key_at(path: Path) -> bytes:
    """The key that signs service-account tokens; made at the first start."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_hex(32))
    return path.read_text().encode()


class Tokens:
    """Reads and issues tokens."""

    def __init__(
        self, store: Store, static: dict[str, User], key: bytes, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._static = static
        self._key = key
        self._now = now

    def user(self, authorization: str | None) -> User:
        """The user of an Authorization header; anonymous without one, 401 for a bad one."""
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "basic":  # kubectl sends no bearer token over plain http
            token = _password(token)
        elif scheme.lower() != "bearer":
            raise UNAUTHORIZED
        return self._static.get(token) or self._account_user(token)

    def issue(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a TokenRequest for a service account, bound to a pod if it asks for one."""
        account = self._object("serviceaccounts", call.namespace, call.name)
        spec = body.get("spec") or {}
        life_s = int(spec.get("expirationSeconds") or DEFAULT_LIFE_S)
        if life_s < SHORTEST_LIFE_S:
            raise ApiError(
                422,
                "Invalid",
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
                f"Invalid value: {life_s}: may not specify a duration less than 10 minutes",
            )
        expires = self._now() + timedelta(seconds=life_s)
        claims = {
            "sub": f"system:serviceaccount:{call.namespace}:{call.name}",
            "exp": int(expires.timestamp()),
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {
                "namespace": call.namespace,
                "serviceaccount": _reference(account),
                **self._bound(call, spec.get("boundObjectRef")),
            },
        }
        status = {"token": self._signed(claims), "expirationTimestamp": rfc3339(expires)}
        head = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        return {**head, "metadata": body.get("metadata") or {}, "spec": spec, "status": status}

    def _bound(self, call: Call, reference: dict[str, Any] | None) -> dict[str, Any]:
        if not reference:
            return {}
        if reference.get("kind") != "Pod":
            raise bad_request("tokens can be bound to pods only here")
        pod = self._object("pods", call.namespace, reference["name"])
        if reference.get("uid") not in (None, "", pod.meta["uid"]):
            raise bad_request(
                "the UID in the bound object reference does not match the UID in record"
            )
        bound = {"pod": _reference(pod)}
        if node := pod.object["spec"].get("nodeName"):
            found = self._store.get(self._store.kinds.named("nodes"), "", node)
            bound["node"] = _reference(found) if found else {"name": node}
        return bound

    def _account_user(self, token: str) -> User:
        claims = self._verified(token)
        inner = claims["kubernetes.io"]
        namespace = inner["namespace"]
        self._still_there("serviceaccounts", namespace, inner["serviceaccount"])
        if "pod" in inner:
            self._still_there("pods", namespace, inner["pod"])
        groups = (
            "system:serviceaccounts",
            f"system:serviceaccounts:{namespace}",
            "system:authenticated",
        )
        return User(claims["sub"], inner["serviceaccount"]["uid"], groups, _extra(claims))

    def _verified(self, token: str) -> dict[str, Any]:
        try:
            head, payload, signature = token.split(".")
            if not hmac.compare_digest(signature, self._signature(f"{head}.{payload}")):
                raise UNAUTHORIZED
            claims: dict[str, Any] = json.loads(_unpack(payload))
        except (ValueError, binascii.Error) as error:
            raise UNAUTHORIZED from error
        if claims["exp"] <= self._now().timestamp():
            raise UNAUTHORIZED
        return claims

    def _still_there(self, plural: str, namespace: str, reference: dict[str, str]) -> None:
        kind = self._store.kinds.named(plural)
        found = self._store.get(kind, namespace, reference["name"])
        if found is None or found.meta["uid"] != reference["uid"]:
            raise UNAUTHORIZED

    def _object(self, plural: str, namespace: str, name: str) -> Stored:
        kind = self._store.kinds.named(plural)
        found = self._store.get(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found

    def _signed(self, claims: dict[str, Any]) -> str:
        text = f"{_pack({'alg': 'HS256', 'typ': 'JWT'})}.{_pack(claims)}"
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _password(basic: str) -> str:
    try:
        return base64.b64decode(basic, validate=True).decode().partition(":")[2]
    except ValueError as error:
        raise UNAUTHORIZED from error


def _reference(stored: Stored) -> dict[str, str]:
    return {"name": stored.meta["name"], "uid": stored.meta["uid"]}


def _extra(claims: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    inner = claims["kubernetes.io"]
    extra: dict[str, tuple[str, ...]] = {f"{_EXTRA}/credential-id": (f"JTI={claims['jti']}",)}
    for what in ("node", "pod"):
        if what in inner:
            for field, value in inner[what].items():
                extra[f"{_EXTRA}/{what}-{field}"] = (value,)
    return extra


def _pack(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _unpack(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
