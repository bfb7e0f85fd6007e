"""Changing a Node: read, judge, patch what was judged, and judge the answer to see that it is so.

The patch carries UID and resourceVersion of the read that was judged, so that nothing which came in
between is overwritten. A lost answer needs no case of its own: the next read shows what happened.
"""

from collections.abc import Callable, Sequence

from activities.endings import CONTENDED, ended
from activities.look import Sight, see
from fleet.errors import Ambiguous, Conflict, NotFound
from fleet.mark import Mark, format_mark
from fleet.names import MARK_ANNOTATION, node_path
from fleet.node import Manifest, NodeIdentity, NodeState, Taint, read_node
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes, PatchType
from fleet.request import StepRequest

CHANGE_TRIES = 8
"""Reads of one change. Kubelets and agents write to their Node every few seconds, not always."""

Judge = Callable[[Manifest, NodeState], Json | Outcome]
"""What to change about this node, or how the step ends."""


async def change_node(
    kubernetes: Kubernetes, request: StepRequest, judge: Judge, start: Sight | None = None
) -> Outcome:
    """Change the node until `judge` has nothing to change; its Outcome is the step's.

    `start` is a read of just now to begin with.
    """
    for _ in range(CHANGE_TRIES):
        sight = start or await see(kubernetes, request.node)
        if isinstance(sight, Outcome):
            return sight
        verdict = judge(sight.manifest, sight.node)
        if isinstance(verdict, Outcome):
            return verdict
        start = await _try(kubernetes, request.node, guarded(verdict, sight.node))
    what = f"{request.node.name} changed between read and patch {CHANGE_TRIES} times"
    return ended(OutcomeKind.TRANSIENT, CONTENDED, what)


def guarded(patch: Json, node: NodeState) -> Json:
    """The patch with the guards of the read that it rests on."""
    guards = {"uid": node.identity.uid, "resourceVersion": node.resource_version}
    return {**patch, "metadata": {**patch.get("metadata", {}), **guards}}


def merged(*patches: Json) -> Json:
    """Merge patches that touch different things, as one."""
    whole: Json = {}
    for patch in patches:
        for key, value in patch.items():
            both = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = merged(whole[key], value) if both else value
    return whole


def mark_patch(mark: Mark | None) -> Json:
    """Write the mark, or take it off."""
    return {"metadata": {"annotations": {MARK_ANNOTATION: format_mark(mark) if mark else None}}}


def taints_patch(manifest: Manifest, *, without: str, plus: Sequence[Taint] = ()) -> Json:
    """The list of taints, whole, as merge patches want it; foreign ones exactly as they stand."""
    standing = (manifest.get("spec") or {}).get("taints") or ()
    kept = [each for each in standing if each["key"] != without]
    added = [{"key": each.key, "value": each.value, "effect": each.effect} for each in plus]
    return {"taints": [*kept, *added] or None}


async def _try(kubernetes: Kubernetes, node: NodeIdentity, patch: Json) -> Sight | None:
    """The node as the patch left it; None where the next read has to say what is so."""
    try:
        manifest = await kubernetes.patch(node_path(node.name), patch, PatchType.MERGE)
    except (Conflict, Ambiguous, NotFound):
        return None
    return Sight(manifest, read_node(manifest, node.cluster))
