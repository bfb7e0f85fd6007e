"""Replays every recorded history in this process; run under several hash seeds by the test."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from activities.adapters.payloads import DATA_CONVERTER
from workflows.disruption_budget import DisruptionBudget
from workflows.keep import KeepForPairs
from workflows.node_remediation import NodeRemediation
from workflows.pairs import TryInPairs
from workflows.prove import ProveNode
from workflows.sandbox import RUNNER
from workflows.sweep import SweepNodes

WORKFLOWS = (
    *(NodeRemediation, DisruptionBudget, ProveNode),
    *(SweepNodes, TryInPairs, KeepForPairs),
)


async def replay(histories: Mapping[str, str]) -> int:
    """Return how many histories were replayed; raise on the first that does not fit the code."""
    replayer = Replayer(
        workflows=WORKFLOWS,
        data_converter=DATA_CONVERTER,
        workflow_runner=RUNNER,
    )
    done = await replayer.replay_workflows(read(histories))  # by one worker: making one costs more
    assert not done.replay_failures
    return len(histories)


async def read(histories: Mapping[str, str]) -> AsyncIterator[WorkflowHistory]:
    for name, text in histories.items():
        yield WorkflowHistory.from_json(name, text)


if __name__ == "__main__":
    found = {path.stem: path.read_text() for path in sorted(Path(sys.argv[1]).glob("*.json"))}
    print(asyncio.run(replay(found)), flush=True)
    os._exit(0)  # threads of the SDK may outlive the interpreter, which then dies by a signal
