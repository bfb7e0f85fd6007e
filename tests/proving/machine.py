"""A machine behind a Node of the emulated API server: real node steps on a folder, and what the
agent makes of what they leave, as conditions.
"""

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console import node_step
from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.part import Part
from fleet.step import NodeStepRequest, Step, format_report
from probes.agent.memory import save
from probes.checks.subject import Subject
from probes.node_step.premise import report
from probes.node_step.reset_gpu import reset_gpu
from probes.node_step.verify import verify
from probes.records import read_records
from tests.agent.fake_machine import BOOT, FakeMachine
from tests.agent.test_conclusions import agent
from tests.cluster import Cluster, conditions

GPU0, GPU1 = Part("gpu:0"), Part("gpu:1")


class SickMachine:
    """Its first GPU computes wrong until it is reset; only the active check can tell."""

    def __init__(self, root: Path, cluster: Cluster) -> None:
        self.fake = FakeMachine(root)
        self.wrong = True
        self.steps: list[str] = []
        self._cluster = cluster

    def compute(self, subject: Subject) -> tuple[Finding, ...]:
        """Stands in for the active check."""
        del subject
        well = tuple(Finding(Check.COMPUTE, each, Verdict.OK) for each in (GPU0, GPU1))
        if not self.wrong:
            return well
        name, code, fatal = FaultName.WRONG_RESULTS, "compute:sum", Severity.FATAL
        sick = Finding(Check.COMPUTE, GPU0, Verdict.FAULT, name, code, Advice.RESET_GPU, fatal)
        return sick, well[1]

    def run(self, pod: dict[str, Any]) -> str:
        """What the Pod's container would do; its termination message."""
        request = _request(pod["spec"]["containers"][0]["command"])
        self.steps.append(request.step)
        act: Callable[..., Any] = reset_gpu if request.step is Step.RESET_GPU else verify
        ending = act(self.fake.machine, request, lambda: datetime.now(UTC))
        if request.step is Step.RESET_GPU:
            self.wrong = False
        return format_report(report(request, self.fake.machine, ending))

    async def speak(self, pod: dict[str, Any] | None = None) -> None:
        """What the agent publishes, once it has read what the step left."""
        del pod
        core = agent(self.fake)
        core.repaired(read_records(self.fake.machine.state, BOOT))
        save(core.memory, self.fake.machine.state, "n1")
        said = [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
            }
            for each in core.conditions().values()
        ]
        ready = conditions(boot=BOOT)[:1]
        answer = await self._cluster.raw.patch(
            "/api/v1/nodes/n1/status", {"status": {"conditions": [*ready, *said]}}
        )
        assert answer.is_success, answer.text
        await self._cluster.renew_lease("n1")


def _request(command: list[str]) -> NodeStepRequest:
    parser = argparse.ArgumentParser()
    node_step.configure(parser)
    return node_step.request_of(parser.parse_args(command[2:]))
