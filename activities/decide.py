"""The activity `decide`: the pure function, so that its answer is on record in the history."""

from datetime import datetime

from temporalio import activity

from fleet.decision import Decision
from fleet.incident import Incident
from policies import decide as deciding
from policies.schema import Policy


@activity.defn(name="decide")
async def decide(policy: Policy, incident: Incident, now: datetime) -> Decision:
    """Run as a local activity: only the decision is kept, with what it rested on."""
    return deciding.decide(policy, incident, now)
