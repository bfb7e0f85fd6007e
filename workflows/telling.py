"""When people are told: once for each question and hand-off, beside the wait and never before it.

What is told and how is the activity's matter. A telling that did not come to its end is told again
by the next run, under the same key.
"""

import asyncio
import hashlib

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.timing import TELL_HEARTBEAT, TELL_RETRY, TELL_TRY, TELL_WHOLE

with workflow.unsafe.imports_passed_through():
    from fleet.decision import Ask, Decision, HandOff
    from fleet.incident import Incident
    from fleet.names import TELL_SUFFIX
    from fleet.telling import Matter, Telling

MOST_TOLD = 32
"""Keys that are remembered from run to run: more questions than an incident may ask."""


class Teller:
    """Tells each thing once; `told` are the keys of what was told, for the next run."""

    def __init__(self, told: tuple[str, ...]) -> None:
        self.told = told
        self._telling: dict[str, asyncio.Task[None]] = {}

    def tell(self, decision: Decision, incident: Incident) -> None:
        """Begin to tell what this decision asks of people, unless that was told."""
        telling = telling_of(decision, incident)
        if telling is None or telling.key in self.told or telling.key in self._telling:
            return
        self._telling[telling.key] = asyncio.create_task(self._tell(telling))

    async def _tell(self, telling: Telling) -> None:
        try:
            await workflow.execute_activity(
                "tell",
                telling,
                result_type=bool,
                task_queue=f"{workflow.info().task_queue}{TELL_SUFFIX}",
                start_to_close_timeout=TELL_TRY,
                schedule_to_close_timeout=TELL_WHOLE,
                heartbeat_timeout=TELL_HEARTBEAT,
                retry_policy=TELL_RETRY,
                summary=f"tell people: {telling.matter} of {telling.node.name}"[:180],
            )
        except ActivityError as failure:
            workflow.logger.warning("what=not-told key=%s why=%r", telling.key, str(failure.cause))
        else:
            self.told = (*self.told, telling.key)[-MOST_TOLD:]
        finally:
            del self._telling[telling.key]


def telling_of(decision: Decision, incident: Incident) -> Telling | None:
    """What a decision asks of people, None where it asks nothing."""
    faults = tuple(each.fault for each in incident.standing)
    match decision:
        case Ask():
            since = str(incident.orders[-1].at) if incident.orders else ""
            facts = (decision.id,) if decision.id else (decision.question, since)
            return Telling(
                matter=Matter.ASK,
                key=_key(incident, Matter.ASK, *facts),
                incident=incident.opening.mark.id,
                node=incident.node,
                faults=faults,
                lines=(decision.question,),
                reasons=decision.reasons,
                answers=decision.answers,
                ask=decision.id,
                until=decision.until,
                expiry=decision.expiry,
            )
        case HandOff():
            since = str(incident.handed_off.at) if incident.handed_off else ""
            return Telling(
                matter=Matter.HAND_OFF,
                key=_key(incident, Matter.HAND_OFF, since, *decision.needs),
                incident=incident.opening.mark.id,
                node=incident.node,
                faults=faults,
                lines=decision.needs,
                reasons=decision.reasons,
            )
        case _:
            return None


def _key(incident: Incident, matter: Matter, *facts: str) -> str:
    """Short, and equal for the same thing of the same incident."""
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    return f"{incident.opening.mark.id}-{matter}-{digest}"
