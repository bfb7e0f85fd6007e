"""What comes next when `decide` itself fails: a person, and a lease that keeps nobody waiting.

As small as can be, and on facts alone: whatever broke `decide` must not break this.
"""

from datetime import datetime

from fleet.decision import Act, Basis, HandOff
from fleet.incident import Incident
from fleet.request import StepRequest
from fleet.step import Step
from policies.requests import QUICK
from policies.schema import Policy

GIVE_BACK_TRIES = 5
"""Then the lease stays with the open run, and the budget frees it when that is closed."""
MOST_CHARACTERS = 500
_REASON = "a fault of the engine itself"


def without_decision(policy: Policy, incident: Incident, now: datetime, why: str) -> Act | HandOff:
    """Give back the lease, or the ask for one; then hand off. `why` says what failed."""
    basis = Basis(now, (), incident.digest, policy.digest)
    if _owes_lease(incident):
        return Act(_give_back(incident, now), (_REASON,), basis)
    need = f"mend the engine: decide failed three times ({why})"[:MOST_CHARACTERS]
    return HandOff((need,), (_REASON,), basis)


def _owes_lease(incident: Incident) -> bool:
    ask, back = incident.asked, incident.last(Step.GIVE_BACK)
    if ask is None:
        return False
    return back is None or back.started < ask.started or back.tries < GIVE_BACK_TRIES


def _give_back(incident: Incident, now: datetime) -> StepRequest:
    mark = incident.opening.mark.id
    return StepRequest(
        operation=f"{mark}-{incident.operations + 1}-{Step.GIVE_BACK}",
        step=Step.GIVE_BACK,
        incident=mark,
        node=incident.node,
        boot_id=incident.boot_id,
        deadline=now + QUICK,
        makes_way_for=Step.HAND_OFF,
    )
