"""How objects go: at once, after a grace that a kubelet must end, or when finalizers let go."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from simulator.apiserver.call import Call
from simulator.apiserver.defaults import rfc3339
from simulator.apiserver.history import Stored
from simulator.apiserver.kinds import Kind
from simulator.apiserver.registry import Admit, Clock
from simulator.apiserver.status import conflict, not_found, success
from simulator.apiserver.store import Store

_FINISHED = ("Succeeded", "Failed")
_RETURNED_WHOLE = {"pods", "serviceaccounts"}  # the answer to a complete delete is the object
DEFAULT_GRACE_S = 30


class Deletion:
    """Deletes objects as their kind wants it."""

    def __init__(self, store: Store, now: Clock, admit: Admit) -> None:
        self._store = store
        self._now = now
        self._admit = admit

    def delete(self, call: Call, options: dict[str, Any]) -> dict[str, Any]:
        """Delete one object; returns the body of the answer (the object, or a Status)."""
        before = self._store.get(call.kind, call.namespace, call.name)
        if before is None:
            raise not_found(call.kind, call.name)
        check_preconditions(before, options)
        self._admit(call, {}, before.object)
        dry_run = call.dry_run or "All" in (options.get("dryRun") or [])
        if call.kind.plural == "pods" and not call.kind.custom:
            return self._pod(before, _grace(call, options), dry_run)
        after = self._marked(before)
        if after is not None:
            return after if dry_run else self._put(before, after).object
        if not dry_run:
            self._remove(before)
        if call.kind.plural in _RETURNED_WHOLE:
            return before.object
        return success(call.kind, call.name, before.meta["uid"])

    def _marked(self, before: Stored) -> dict[str, Any] | None:
        """The object with its deletion noted, None if nothing keeps it."""
        namespace = before.kind.plural == "namespaces" and not before.kind.custom
        if not before.meta.get("finalizers") and not namespace:
            return None
        if before.meta.get("deletionTimestamp"):
            return before.object
        marked = _with_deletion(before, self._now(), 0)
        if namespace:
            marked["metadata"].pop("deletionGracePeriodSeconds")
            marked["status"] = {**(before.object.get("status") or {}), "phase": "Terminating"}
        return marked

    def _pod(self, before: Stored, grace_s: int | None, dry_run: bool) -> dict[str, Any]:
        """A pod on a node stays until its kubelet deletes it with grace 0."""
        if before.meta.get("deletionTimestamp"):
            after, ends = self._shortened(before, grace_s)
        else:
            seconds = _pod_grace(before.object, grace_s)
            after, ends = _with_deletion(before, self._now(), seconds), seconds == 0
        if dry_run:
            return after
        stored = self._put(before, after)
        if ends and not stored.meta.get("finalizers"):
            return self._remove(stored).object
        return stored.object

    def _shortened(self, before: Stored, grace_s: int | None) -> tuple[dict[str, Any], bool]:
        """A deletion that is under way can only be made shorter."""
        meta = before.meta
        current = meta.get("deletionGracePeriodSeconds", 0)
        wanted = 1 if grace_s is not None and grace_s < 0 else grace_s
        if current == 0 or wanted is None or wanted >= current:
            return before.object, current == 0
        was = datetime.fromisoformat(meta["deletionTimestamp"])
        moment = was - timedelta(seconds=current - wanted)
        if moment < self._now():
            moment, wanted = self._now(), min(wanted, 1)
        changes = {"deletionTimestamp": rfc3339(moment), "deletionGracePeriodSeconds": wanted}
        return {**before.object, "metadata": {**meta, **changes}}, wanted == 0

    def _put(self, before: Stored, after: dict[str, Any]) -> Stored:
        return before if after is before.object else self._store.put(before.kind, after)

    def _remove(self, before: Stored) -> Stored:
        if before.kind.plural == "customresourcedefinitions":
            self._remove_instances(before.object)
        return self._store.remove(before.kind, before)

    def _remove_instances(self, definition: dict[str, Any]) -> None:
        spec = definition["spec"]
        kind = self._store.kinds.find(
            spec["group"], spec["versions"][0]["name"], spec["names"]["plural"]
        )
        for stored in list(self._store.objects(kind).values()) if kind else []:
            self._store.remove(stored.kind, stored)


def check_preconditions(before: Stored, options: dict[str, Any]) -> None:
    """409 unless the object is the one that the caller means."""
    wanted = options.get("preconditions") or {}
    name = before.meta["name"]
    if (uid := wanted.get("uid")) and uid != before.meta["uid"]:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({before.meta['uid']}). The object might have been deleted and then recreated"
        )
        raise conflict(_by_kind(before), name, why)
    version = wanted.get("resourceVersion")
    if version and version != before.meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({before.meta['resourceVersion']}). The object might have "
            "been modified"
        )
        raise conflict(_by_kind(before), name, why)


def _by_kind(stored: Stored) -> Kind:
    """Preconditions speak of a `Pod`, everything else of `pods`."""
    return replace(stored.kind, plural=stored.kind.kind)


def _grace(call: Call, options: dict[str, Any]) -> int | None:
    value = options.get("gracePeriodSeconds", call.query.get("gracePeriodSeconds"))
    return None if value is None else int(value)


def _pod_grace(pod: dict[str, Any], wanted: int | None) -> int:
    seconds = pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
    seconds = seconds if wanted is None else wanted
    finished = (pod.get("status") or {}).get("phase") in _FINISHED
    if not pod["spec"].get("nodeName") or finished:
        return 0
    return 1 if seconds < 0 else int(seconds)


def _with_deletion(before: Stored, now: datetime, seconds: int) -> dict[str, Any]:
    meta = {
        **before.meta,
        "deletionTimestamp": rfc3339(now + timedelta(seconds=seconds)),
        "deletionGracePeriodSeconds": seconds,
    }
    if meta.get("generation"):
        meta["generation"] += 1
    return {**before.object, "metadata": meta}
