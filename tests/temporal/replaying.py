"""Replays every recorded history in this process; run under several hash seeds by the test."""

import asyncio
import os
import sys
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from workflows.disruption_budget import DisruptionBudget
from workflows.keep import KeepForPairs
from workflows.node_remediation import NodeRemediation
from workflows.pairs import TryInPairs
from workflows.prove import ProveNode
from workflows.sandbox import RUNNER
from workflows.sweep import SweepNodes


async def replay(histories: dict[str, str]) -> int:
    """Return how many histories were replayed; raise on the first that does not fit the code."""
    replayer = Replayer(
        workflows=[
            *(NodeRemediation, DisruptionBudget, ProveNode, SweepNodes),
            *(TryInPairs, KeepForPairs),
        ],
        data_converter=pydantic_data_converter,
        workflow_runner=RUNNER,
    )
    for name, text in histories.items():
        await replayer.replay_workflow(WorkflowHistory.from_json(name, text))
    return len(histories)


if __name__ == "__main__":
    found = {path.stem: path.read_text() for path in sorted(Path(sys.argv[1]).glob("*.json"))}
    print(asyncio.run(replay(found)), flush=True)
    os._exit(0)  # threads of the SDK may outlive the interpreter, which then dies by a signal
