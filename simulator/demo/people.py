"""The people of a run, as Temporal hears them: what they are asked, and what they say to it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from fleet.names import QUERY_PLAN, incident_workflow_id, sweep_id
from simulator.demo.settings import CLUSTER
from simulator.observer import sight
from simulator.observer.sight import Json

LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 150.0
"""A question that is not asked within this time is not going to be."""


class NotAsked(Exception):
    """The question that a person was to answer never came."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the engine asks; `id` is empty where it is answered by a verb that needs none."""

    id: str
    text: str
    workflow: str


class People:
    """Whoever answers. `nodes` are the nodes as they are seen; `ui` is the Temporal UI's address.

    With `yourself` the one who looks at the run is asked to approve, too.
    """

    def __init__(
        self,
        temporal: str,
        namespace: str,
        nodes: Mapping[str, Json],
        ui: str,
        yourself: bool = False,
    ) -> None:
        self._temporal = temporal
        self._namespace = namespace
        self._nodes = nodes
        self._ui = ui
        self._client: Client | None = None
        self.yourself = yourself

    async def question(self, node: str) -> Question:
        """Wait until the incident of a node asks something; raise NotAsked where it never does."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    if asked := await self._asked(node):
                        return asked
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise NotAsked(f"{node}: nobody was asked anything") from None

    async def until_answered(self, node: str, question: Question) -> None:
        """Wait until something else is the case."""
        while True:
            if await self._asked(node) != question:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def order(self, question: Question, verb: str, actor: str, reason: str) -> None:
        """Say something by an update, which may be refused."""
        handle = await self._handle(question.workflow)
        await handle.execute_update(verb, _said(question, actor, reason))

    async def signal(self, question: Question, verb: str, actor: str, reason: str) -> None:
        """Say something by a signal, as the Temporal UI sends it."""
        handle = await self._handle(question.workflow)
        await handle.signal(verb, _said(question, actor, reason))

    async def sweep(self) -> None:
        """Have idle nodes looked for now, as `temporal schedule trigger` does."""
        client = await self._connected()
        await client.get_schedule_handle(sweep_id(CLUSTER)).trigger()

    def how_to_approve(self, question: Question) -> str:
        """The commands and the address by which you answer, short enough for narrow terminals."""
        node = question.workflow.split("/")[-2]
        run = quote(question.workflow, safe="")
        return "\n".join(
            (
                "Say yes in another terminal:",
                f"export TEMPORAL_ADDRESS={self._temporal} TEMPORAL_NAMESPACE={self._namespace}",
                f"uv run gpumend approve {node} --cluster {CLUSTER} --reason seen"
                f" --ask {question.id}",
                "or by the signal approve in the Temporal UI, with this input, at",
                json.dumps({"actor": "you", "reason": "seen", "ask": question.id}),
                f"{self._ui}/namespaces/{self._namespace}/workflows/{run}",
            )
        )

    async def _asked(self, node: str) -> Question | None:
        workflow = self._workflow(node)
        if not workflow:
            return None
        handle = await self._handle(workflow)
        try:
            plan: dict[str, Any] = await handle.query(QUERY_PLAN)
        except RPCError:
            return None
        decision = plan["next"]
        if decision["kind"] != "ask":
            return None
        return Question(decision.get("id", ""), decision["question"], workflow)

    def _workflow(self, node: str) -> str:
        mark = sight.mark(self._nodes.get(node, {}))
        return incident_workflow_id(CLUSTER, node, str(mark["machine"])) if mark else ""

    async def _handle(self, workflow: str) -> WorkflowHandle[Any, Any]:
        return (await self._connected()).get_workflow_handle(workflow)

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = await Client.connect(self._temporal, namespace=self._namespace)
        return self._client


def _said(question: Question, actor: str, reason: str) -> dict[str, str]:
    said = {"actor": actor, "reason": reason}
    return {**said, "ask": question.id} if question.id else said
