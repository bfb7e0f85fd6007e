"""Prove a node: put the taint on an idle one, run its checks, take the taint off or leave it.

Each looks again just before it acts, and each may be repeated: what is done already is seen.
"""

from dataclasses import replace
from datetime import timedelta

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import succeeded
from activities.look import Sight, glance, identity_changed, see
from activities.node_change import change_node, merged, taints_patch
from activities.node_step import step_request
from activities.pinned_pod import PinnedPods
from activities.proof_look import as_step, premise, tainted, work_comes, working
from activities.release import not_well, until_well
from activities.verify import judge_verify
from fleet.names import HOLD_EFFECT, PROOF_ANNOTATION, UNPROVEN_TAINT
from fleet.node import Manifest, NodeState, Taint
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes
from fleet.proof import BY_TRIALS, Proof, Why, format_proof
from fleet.proving import OPERATIONS, ProofEnd, ProveRequest
from policies.proving import without_harmless

LATE_WORK = timedelta(seconds=10)
"""How long after the taint a Pod may still come that was placed before it: a scheduler hears of a
taint within a second, and binds what it has placed within a few."""
PATIENCE = timedelta(minutes=1)
"""How long the agent may take to agree: it patches once a second, after it has read the record."""


class ProveActivities:
    """The activities `prove-taint`, `prove` and `prove-end`."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        pods: PinnedPods,
        now: Clock = utc_now,
        *,
        late_work: timedelta = LATE_WORK,
        patience: timedelta = PATIENCE,
    ) -> None:
        self._kubernetes = kubernetes
        self._pods = pods
        self._now = now
        self._late_work = late_work
        self._patience = patience

    @activity.defn(name="prove-taint")
    async def taint(self, request: ProveRequest) -> Outcome:
        """SUCCEEDED: the sweep's taint is on, and no work came. Else `prove-end` is due at once."""
        return await conduct(lambda progress: self._taint(request, progress))

    @activity.defn(name="prove")
    async def prove(self, request: ProveRequest) -> Outcome:
        """SUCCEEDED: every check passed. PERMANENT with findings: a fault. TRANSIENT: cannot tell.

        CANCELLED and SUPERSEDED: this node is not to be proven now.
        """
        return await conduct(lambda progress: self._prove(request, progress))

    @activity.defn(name="prove-end")
    async def end(self, request: ProveRequest) -> Outcome:
        """SUCCEEDED: the node carries what the end of the proof asks for.

        After a pass: CANCELLED `fault-stands` or TRANSIENT `not-ready` where its agent does not
        agree that all is well; the taint stays.
        """
        return await conduct(lambda progress: self._end(request, progress))

    async def _taint(self, request: ProveRequest, progress: Progress) -> Outcome:
        progress.say("putting the taint on an idle node")
        sight = await see(self._kubernetes, request.task.node)
        if isinstance(sight, Outcome):
            return sight
        no = await working(self._kubernetes, sight, request, self._now)
        if no:
            return no

        def judge(manifest: Manifest, node: NodeState) -> Json | Outcome:
            refused = premise(manifest, node, request, self._now)
            if refused:
                return refused
            if node.unproven:
                return tainted(node, request) or succeeded("the taint is on", node)
            return _with_taint(manifest, request.task.why)

        done = await change_node(self._kubernetes, as_step(request), judge, sight)
        if done.kind is not OutcomeKind.SUCCEEDED:
            return done
        progress.say("looking whether work came meanwhile")
        came = await work_comes(self._kubernetes, sight, request, self._now, self._late_work)
        return came or done

    async def _prove(self, request: ProveRequest, progress: Progress) -> Outcome:
        progress.say("looking whether the node may be proven")
        sight = await see(self._kubernetes, request.task.node)
        if isinstance(sight, Outcome):
            return sight
        no = self._not_now(sight, request) or await working(
            self._kubernetes, sight, request, self._now
        )
        if no:
            return no
        progress.say("running the checks on the node")
        step = as_step(request)
        told = replace(step_request(step), word=request.word)
        report = await self._pods.run(told, request.task.node.name)
        after = await glance(self._kubernetes, step)
        if isinstance(after, Outcome):
            return after
        return without_harmless(judge_verify(report, step, after.node), request.harmless)

    async def _end(self, request: ProveRequest, progress: Progress) -> Outcome:
        if request.end is ProofEnd.PROVEN:
            progress.say("waiting for the node to say that it is well")
            return await self._proven(request)
        if request.end is not ProofEnd.FOUND:
            progress.say("waiting for its checks to end, before work may come")
            await self._pods.stop(request.task.node.name, OPERATIONS)
        change = self._found if request.end is ProofEnd.FOUND else self._tried

        def judge(manifest: Manifest, node: NodeState) -> Json | Outcome:
            other = identity_changed(node, as_step(request))
            if other:
                return other
            why = Why.of(node.unproven.value) if node.unproven else None
            if why not in _LEFT:
                return succeeded("nothing of ours is left to change", node)
            return change(manifest, node, why)

        return await change_node(self._kubernetes, as_step(request), judge)

    async def _proven(self, request: ProveRequest) -> Outcome:
        step = as_step(request)
        witness, read = await until_well(
            self._kubernetes,
            step,
            lambda sight: self._not_now(sight, request) is not None,
            self._now,
            self._patience,
        )

        def judge(manifest: Manifest, state: NodeState) -> Json | Outcome:
            if state.unproven is None and _is_ours(state.proof, request):
                return succeeded("proven: takes work", state)
            sight = Sight(manifest, state)
            no = self._not_now(sight, request) or not_well(sight, step, witness)
            return no or _without_taint(manifest, self._well(state.proof, request.task.why))

        return await change_node(self._kubernetes, step, judge, read)

    def _not_now(self, sight: Sight, request: ProveRequest) -> Outcome | None:
        gone = tainted(sight.node, request)
        return gone or premise(sight.manifest, sight.node, request, self._now)

    def _well(self, before: Proof, why: Why) -> Proof:
        """A trial in pairs proves how a node gets on with others, and no more."""
        if why in BY_TRIALS:
            return replace(before, paired=self._now(), unpaired=None)
        return replace(before, proven=self._now(), tried=self._now())

    def _looked(self, before: Proof, why: Why) -> Proof:
        if why in BY_TRIALS:
            return replace(before, unpaired=self._now())
        return replace(before, tried=self._now())

    def _tried(self, manifest: Manifest, node: NodeState, why: Why) -> Json:
        """Not proven, and not found sick: it serves as before."""
        return _without_taint(manifest, self._looked(node.proof, why))

    def _found(self, manifest: Manifest, node: NodeState, why: Why) -> Json:
        """From now on only a passed proof, or a trial, takes the taint off."""
        looked = self._looked(node.proof, why)
        return merged(_with_taint(manifest, _LEFT[why]), _remembering(looked))


_LEFT = {Why.SWEEP: Why.FOUND, Why.PAIRS: Why.ODD}
"""Who was in service, and the taint that stays where something was found."""


def _with_taint(manifest: Manifest, why: Why) -> Json:
    ours = Taint(UNPROVEN_TAINT, why.value, HOLD_EFFECT)
    return {"spec": taints_patch(manifest, without=UNPROVEN_TAINT, plus=[ours])}


def _without_taint(manifest: Manifest, proof: Proof) -> Json:
    return merged({"spec": taints_patch(manifest, without=UNPROVEN_TAINT)}, _remembering(proof))


def _remembering(proof: Proof) -> Json:
    return {"metadata": {"annotations": {PROOF_ANNOTATION: format_proof(proof)}}}


def _is_ours(proof: Proof, request: ProveRequest) -> bool:
    """Whether this very proof took the taint off: an earlier try, whose answer was lost."""
    at = proof.paired if request.task.why in BY_TRIALS else proof.proven
    return at is not None and at >= request.since
