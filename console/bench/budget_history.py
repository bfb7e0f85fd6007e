"""Reads the histories of a budget and judges its promise by a count of its own.

It shares nothing with the ledger: it knows what was asked, given back, answered and told, from the
recorded payloads alone, and adds up at every grant how many are out in each of its scopes.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client


@dataclass
class Judge:
    """What the events so far amount to. `broken`: grants beyond a maximum, in words."""

    events: int = 0
    grants: int = 0
    runs: int = 0
    most: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    _asks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _lent: set[str] = field(default_factory=set)
    _used: Counter[str] = field(default_factory=Counter)
    _down: dict[str, list[str]] = field(default_factory=dict)
    _batches: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    async def read(self, client: Client, workflow_id: str) -> "Judge":
        """Read every run of a workflow, the first one first."""
        found = await client.get_workflow_handle(workflow_id).describe()
        run = found.raw_description.workflow_execution_info.first_run_id
        while run:
            history = await client.get_workflow_handle(workflow_id, run_id=run).fetch_history()
            self.take(history.events)
            last = history.events[-1].workflow_execution_continued_as_new_event_attributes
            run = last.new_execution_run_id
        return self

    def take(self, events: Iterable[HistoryEvent]) -> None:
        """Take in one run; batches that wait for their answer do not go on into the next."""
        self.runs += 1
        self._batches.clear()
        for event in events:
            self.events += 1
            self._take(event)

    def _take(self, event: HistoryEvent) -> None:
        match event.WhichOneof("attributes"):
            case "workflow_execution_signaled_event_attributes":
                signal = event.workflow_execution_signaled_event_attributes
                if signal.signal_name == "census":
                    scopes = _read(signal.input.payloads)["scopes"]
                    self._down = {name: each["down"] for name, each in scopes.items()}
            case "workflow_execution_update_accepted_event_attributes":
                accepted = event.workflow_execution_update_accepted_event_attributes
                request = accepted.accepted_request.input
                if request.name == "exchange":
                    self._batches[event.event_id] = _read(request.args.payloads)
            case "workflow_execution_update_completed_event_attributes":
                completed = event.workflow_execution_update_completed_event_attributes
                batch = self._batches.pop(completed.accepted_event_id, None)
                if batch is not None:
                    self._exchanged(batch, _read(completed.outcome.success.payloads))
            case "activity_task_scheduled_event_attributes":
                scheduled = event.activity_task_scheduled_event_attributes
                if scheduled.activity_type.name == "grant":
                    self._granted(_read(scheduled.input.payloads))

    def _exchanged(self, batch: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        for incident in (*batch["gives"], *batch["hand_offs"]["incident"]):
            self._give(incident)
        for ask in _rows(batch["asks"]):
            if ask["incident"] not in self._lent:
                self._asks[ask["incident"]] = ask
        self._granted(answer["granted"])

    def _give(self, incident: str) -> None:
        ask = self._asks.pop(incident, None)
        if ask and incident in self._lent:
            self._lent.remove(incident)
            self._used.subtract(claim["scope"] for claim in ask["claims"])

    def _granted(self, incidents: Iterable[str]) -> None:
        """Those that are new; then whether each of their scopes still keeps to its maximum."""
        new = [each for each in incidents if each not in self._lent]
        for incident in new:
            self._lent.add(incident)
            self._used.update(claim["scope"] for claim in self._asks[incident]["claims"])
        self.grants += len(new)
        known = {each["node"] for each in self._asks.values()} if self._any_down() else set()
        for incident in new:
            for claim in self._asks[incident]["claims"]:
                scope, maximum = claim["scope"], claim["maximum"]
                down = sum(each not in known for each in self._down.get(scope, ()))
                used = self._used[scope] + down
                self.most[scope.partition("/")[0]] = max(self.most[scope.partition("/")[0]], used)
                if used > maximum:
                    self.broken.append(f"{scope}: {used} of {maximum} with {incident}")

    def _any_down(self) -> bool:
        return any(self._down.values())


def _rows(asks: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Who asks, for which node and in which scopes, of asks by columns."""
    rows = zip(asks["incident"], asks["node"], asks["place"], strict=True)
    for incident, node, place in rows:
        claims = asks["reaches"][place]["claims"]
        yield {"incident": incident, "node": node, "claims": claims}


def _read(payloads: Iterable[Payload]) -> Any:
    return json.loads(next(iter(payloads)).data)
