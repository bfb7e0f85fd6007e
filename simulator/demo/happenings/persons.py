"""What people do: they answer what they are asked, and some take our taint off."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import ClassVar

from simulator.client import MERGE, Api, ApiError
from simulator.demo.people import NotAsked, Question
from simulator.demo.scenario import Happening, Reach
from simulator.observer import sight

TRIES = 20
"""Of a change that others' writes may come in between."""
AGAIN_SECONDS = 5.0
"""A sweep that finds no room in the budget ends at once, and is asked for again."""
OWNED_SECONDS = 1.5
"""After the ladder has begun, so that it is in the middle of it."""
PERSONS = ("person:ada", "person:grace")
ADA, GRACE = PERSONS
OWN_TAINT = "example.org/team"


@dataclass(frozen=True, slots=True)
class Asks:
    """After `first` a person is asked something, thinks for a while and answers `verb`.

    `by_signal`: as the Temporal UI sends it. `you_may`: with `--approve-yourself` it is you who is
    waited for.
    """

    fault: ClassVar[bool] = True

    first: Happening
    actor: str
    verb: str
    reason: str
    thinks: float = 4.0
    by_signal: bool = False
    you_may: bool = False

    @property
    def told(self) -> str:
        """What comes first."""
        return self.first.told

    async def happen(self, node: str, reach: Reach) -> None:
        """Let it happen, wait for the question, answer it."""
        await self.first.happen(node, reach)
        question = await reach.people.question(node)
        reach.tell(node, f"asks: {question.text}")
        if self.you_may and reach.people.yourself:
            reach.tell(node, f"waits for you. {reach.people.how_to_approve(question)}")
            await reach.people.until_answered(node, question)
            return await note_approval(reach, self.actor, node)
        await asyncio.sleep(self.thinks)
        return await self._answer(node, question, reach)

    async def _answer(self, node: str, question: Question, reach: Reach) -> None:
        how = "signal" if self.by_signal else "update"
        reach.tell(node, f"{self.actor} says {self.verb} by {how}: {self.reason}")
        if self.verb == "approve":
            await note_approval(reach, self.actor, node)
        people = reach.people
        say = people.signal if self.by_signal else people.order
        await say(question, self.verb, self.actor, self.reason)


@dataclass(frozen=True, slots=True)
class LosesHold:
    """After `first` a person takes our taint off in the middle of the ladder."""

    fault: ClassVar[bool] = True

    first: Happening
    actor: str

    @property
    def told(self) -> str:
        """What comes first."""
        return self.first.told

    async def happen(self, node: str, reach: Reach) -> None:
        """Let it happen, wait until the ladder has begun, and take the taint off."""
        await self.first.happen(node, reach)
        await reach.until(lambda: reach.state(node) == "owned")
        await asyncio.sleep(OWNED_SECONDS)
        reach.tell(node, f"{self.actor} takes our taint off")
        async with reach.api(self.actor) as api:
            for _ in range(TRIES):
                if await _taint_off(api, node):
                    return


@dataclass(frozen=True, slots=True)
class OwnedByOthers:
    """A node carries a taint of its team and is cordoned by a person before anything happens."""

    fault: ClassVar[bool] = True

    first: Happening
    actor: str

    @property
    def told(self) -> str:
        """What comes first, as far as people see."""
        return self.first.told

    async def happen(self, node: str, reach: Reach) -> None:
        """Cordon and taint, then let it happen."""
        taint = {"key": OWN_TAINT, "value": "vision", "effect": "NoSchedule"}
        async with reach.api(self.actor) as api:
            found = await api.get(f"/api/v1/nodes/{node}")
            others = (found.get("spec") or {}).get("taints") or []
            body = {"spec": {"unschedulable": True, "taints": [*others, taint]}}
            await api.patch(f"/api/v1/nodes/{node}", body, MERGE)
        reach.tell(node, f"{self.actor} cordons it and taints it for a team")
        await self.first.happen(node, reach)


@dataclass(frozen=True, slots=True)
class AsksForSweep:
    """After `first`, which nobody tells of, a person takes their pause off an idle node and has
    idle nodes looked at now."""

    fault: ClassVar[bool] = True

    first: Happening
    actor: str

    @property
    def told(self) -> str:
        """What comes first, and that nothing shows it."""
        return f"{self.first.told}, and no line and no counter says so"

    async def happen(self, node: str, reach: Reach) -> None:
        """Let it happen, then take the annotation off, and ask until the node is looked at."""
        await self.first.happen(node, reach)
        reach.tell(node, f"{self.actor} takes her pause off it, and asks for a sweep of idle nodes")
        async with reach.api(self.actor) as api:
            body = {"metadata": {"annotations": {sight.PAUSE: None}}}
            await api.patch(f"/api/v1/nodes/{node}", body, MERGE)
        for _ in range(TRIES):
            await reach.people.sweep()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    return await reach.until(lambda: _looked_at(reach.nodes.get(node, {})))
        raise NotAsked(f"{node}: no sweep looked at it")


def _looked_at(node: sight.Json) -> bool:
    return sight.unproven(node) is not None or sight.mark(node) is not None


async def note_approval(reach: Reach, actor: str, node: str) -> None:
    """Put on record, where the audit sees it, that a person agrees: Temporal has no audit here."""
    event = {
        "metadata": {"generateName": "approval-", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node},
        "reason": "PersonApproved",
        "message": f"{actor} agrees to what is asked about {node}",
        "type": "Normal",
    }
    async with reach.api(actor) as api:
        await api.create("/api/v1/namespaces/default/events", event)


async def _taint_off(api: Api, node: str) -> bool:
    """Take our taint off, and only ours; False if somebody wrote in between."""
    found = await api.get(f"/api/v1/nodes/{node}")
    taints = [each for each in found["spec"].get("taints") or () if each["key"] != sight.HOLD]
    guard = {"resourceVersion": found["metadata"]["resourceVersion"]}
    body = {"metadata": guard, "spec": {"taints": taints or None}}
    try:
        await api.patch(f"/api/v1/nodes/{node}", body, MERGE)
    except ApiError as error:
        if error.code != 409:
            raise
        return False
    return True
