"""The activity `recall`: what was tried on this machine by incidents that are over, and by what
means it can be repaired.
"""

from temporalio import activity

from activities.means import MeansReader
from fleet.errors import Refused, Transient
from fleet.names import incident_workflow_id
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Memory
from fleet.request import StepRequest


class Recall:
    """Reads past attempts through the `Memory` port, and the node's means."""

    def __init__(self, memory: Memory, means: MeansReader) -> None:
        self._memory = memory
        self._means = means

    @activity.defn(name="recall")
    async def recall(self, request: StepRequest) -> Outcome:
        """SUCCEEDED with everything there is to remember, else nothing is known at all."""
        node = request.node
        workflow_id = incident_workflow_id(node.cluster, node.name, node.machine)
        try:
            past = await self._memory.past_attempts(workflow_id)
            means = await self._means.of(node)
        except Transient as problem:
            return Outcome(OutcomeKind.TRANSIENT, "unreachable", str(problem))
        except Refused as problem:
            return Outcome(OutcomeKind.PERMANENT, "unreadable", str(problem))
        ways = ", ".join(means) or "nothing"
        detail = f"{len(past)} earlier attempts; means: {ways}"
        return Outcome(OutcomeKind.SUCCEEDED, detail=detail, past=past, means=means)
