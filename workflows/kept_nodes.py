"""The nodes that a trial in pairs keeps: started as children, there or refused, told and let go.

Who is tried with whom is the trial's.
"""

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import (
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
)

with workflow.unsafe.imports_passed_through():
    from activities.search_attributes import proof_attributes
    from fleet import names
    from fleet.proving import ProofClosing, ProofEnd, ProveTask, TrialWord
    from policies.flocks import LEAST
    from policies.prove_terms import ProveTerms

REFUSALS = 3
"""Nodes for which the budget lends nothing, before no more are asked for."""

Handle = workflow.ChildWorkflowHandle[Any, ProofClosing]


class KeptNodes:
    """A few at a time."""

    def __init__(self, terms: ProveTerms) -> None:
        self._terms = terms
        self._tasks: dict[str, ProveTask] = {}
        self._handles: dict[str, Handle] = {}
        self._ready: set[str] = set()
        self._told: set[str] = set()
        self.refused = ""
        """Why the budget does not lend enough, once that is so."""

    @property
    def there(self) -> dict[str, ProveTask]:
        """Those that may be tried now."""
        return {
            name: self._tasks[name]
            for name, handle in self._handles.items()
            if name in self._ready and not handle.done()
        }

    def is_ready(self, node: str) -> None:
        """Its keeper says that it has it."""
        self._ready.add(node)

    async def take(self, left: deque[ProveTask], most: int) -> None:
        """Take nodes out of `left` until so many are there, or none is left, or none is lent."""
        refusals: list[str] = []
        while left and len(self.there) < most and len(refusals) < REFUSALS:
            began = [left.popleft() for _ in range(min(len(left), most - len(self.there)))]
            fresh = [each.node.name for each in began if await self._keep(each)]
            await workflow.wait_condition(lambda fresh=fresh: all(map(self._is_decided, fresh)))  # type: ignore[misc]
            for name in fresh:
                if self._handles[name].done():
                    closing = await _closing(self._handles[name])
                    refusals += closing.reasons if closing.end is ProofEnd.NO_ROOM else ()
        if refusals and len(self.there) < LEAST:
            self.refused = f"no lease: {refusals[0]}"

    async def tell(self, words: Mapping[str, TrialWord]) -> None:
        """A word to each that is still there."""
        for name in self.there:
            self._told.add(name)
            with suppress(FailureError):  # it ended meanwhile, by itself
                await self._handles[name].signal(names.SIGNAL_WORD, words[name])

    async def let_go(self) -> dict[str, ProofClosing]:
        """The ends of all, once none is kept any more; who was told nothing is called off."""
        for name, handle in self._handles.items():
            if name not in self._told:
                handle.cancel()
        await workflow.wait_condition(lambda: all(each.done() for each in self._handles.values()))
        ended = {name: await _closing(each) for name, each in self._handles.items()}
        self._handles = {}
        return ended

    async def _keep(self, task: ProveTask) -> bool:
        """Begin to keep a node; False where a proof of it runs already."""
        node = task.node
        try:
            handle: Handle = await workflow.start_child_workflow(
                names.KEEP_WORKFLOW,
                args=[task, self._terms],
                id=names.prove_workflow_id(node.cluster, node.name, node.machine),
                result_type=ProofClosing,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                search_attributes=proof_attributes(task),
                static_summary=f"{node.name}: kept for a trial in pairs",
            )
        except WorkflowAlreadyStartedError:
            return False
        self._tasks[node.name], self._handles[node.name] = task, handle
        return True

    def _is_decided(self, name: str) -> bool:
        return name in self._ready or self._handles[name].done()


async def _closing(handle: Handle) -> ProofClosing:
    try:
        return await handle
    except ChildWorkflowError as problem:
        return ProofClosing(ProofEnd.UNKNOWN, (str(problem.cause),))
