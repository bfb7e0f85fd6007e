"""What each role may do, as the manifests that we ship say, and as the API server answers.

The manifests are the only list of rights; here they are read, one permission a question.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from console.doctor.item import Item, ok, some, unknown, wrong
from fleet.errors import Refused
from fleet.ports import Json, Kubernetes

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
MANIFESTS = ("engine-rbac.yaml", "agent-rbac.yaml")
AT_ONCE = 16
ACCESS = "/apis/authorization.k8s.io/v1"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class Right:
    """One permission; an empty namespace is all of them."""

    verb: str
    group: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {kind}" + (f" in {self.namespace}" if self.namespace else "")

    @property
    def attributes(self) -> Mapping[str, str]:
        """As a review asks for it."""
        resource, _, subresource = self.resource.partition("/")
        return {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            **({"subresource": subresource} if subresource else {}),
            **({"namespace": self.namespace} if self.namespace else {}),
        }


@dataclass(frozen=True, slots=True)
class Account:
    """A service account, what it needs, and the manifest that gives it."""

    user: str
    manifest: str
    needs: tuple[Right, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Which needs are not met; None: we may not ask about this account."""

    account: Account
    missing: tuple[Right, ...] | None


def shipped(folder: Path = DEPLOY) -> tuple[Account, ...]:
    """Every account of the manifests with its rights."""
    needs: dict[tuple[str, str], list[Right]] = {}
    for name in MANIFESTS:
        documents = [each for each in yaml.safe_load_all((folder / name).read_text()) if each]
        for user, right in _bound(documents):
            needs.setdefault((user, name), []).append(right)
    return tuple(
        Account(user, name, tuple(dict.fromkeys(rights)))
        for (user, name), rights in sorted(needs.items())
    )


def _bound(documents: Sequence[Json]) -> Iterator[tuple[str, Right]]:
    roles = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in documents
        if each["kind"] in ("Role", "ClusterRole")
    }
    for binding in documents:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        namespace = binding["metadata"].get("namespace", "")
        reference = binding["roleRef"]
        home = namespace if reference["kind"] == "Role" else ""
        role = roles[reference["kind"], home, reference["name"]]
        for subject in binding["subjects"]:
            user = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
            yield from ((user, each) for each in _rights(role, namespace))


def _rights(role: Json, namespace: str) -> Iterator[Right]:
    for rule in role["rules"]:
        if "resourceNames" in rule:
            continue  # of one object by name, which a question about all of them would not meet
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(verb, group, resource, namespace)


async def ask(kubernetes: Kubernetes, accounts: Iterable[Account]) -> tuple[str, list[Answer]]:
    """Who we are, and what each account lacks; about others only who may ask is answered."""
    me = await kubernetes.create(WHO_AM_I, {})
    user = str(((me.get("status") or {}).get("userInfo") or {}).get("username", ""))
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(account: Account) -> Answer:
        try:
            denied = await _denied(kubernetes, account, user, gate)
        except Refused as problem:
            if problem.code != _FORBIDDEN:
                raise
            return Answer(account, None)
        return Answer(account, denied)

    return user, list(await asyncio.gather(*(one(each) for each in accounts)))


async def _denied(
    kubernetes: Kubernetes, account: Account, me: str, gate: asyncio.Semaphore
) -> tuple[Right, ...]:
    async def may(right: Right) -> bool:
        spec: dict[str, Any] = {"resourceAttributes": dict(right.attributes)}
        kind = "selfsubjectaccessreviews"
        if account.user != me:
            kind, spec["user"] = "subjectaccessreviews", account.user
        async with gate:
            answer = await kubernetes.create(f"{ACCESS}/{kind}", {"spec": spec})
        return bool((answer.get("status") or {}).get("allowed"))

    allowed = await asyncio.gather(*(may(each) for each in account.needs))
    return tuple(each for each, yes in zip(account.needs, allowed, strict=True) if not yes)


def judge(answers: Iterable[Answer]) -> Iterator[Item]:
    """An item an account."""
    for each in answers:
        subject = f"rights of {each.account.user.rpartition(':')[2]}"
        if each.missing is None:
            yield unknown(subject, "you may not ask about others (subjectaccessreviews)")
        elif each.missing:
            says = f"it may not {some(map(str, each.missing))}"
            yield wrong(subject, says, f"kubectl apply -f deploy/{each.account.manifest}")
        else:
            yield ok(subject, f"all {len(each.account.needs)} granted")
