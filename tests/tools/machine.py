"""A machine with our own `dcgmi` and `nvidia-smi`, and an NVML that answers until told not to."""

import io
import json
import os
import signal
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from fleet.finding import Finding, Verdict
from probes import checks
from probes.checks.subject import TOOL_LIMIT, Subject
from probes.child import GRACE, Ended
from probes.parts import Gpu, Naming
from tests.agent.fake_machine import FakeMachine
from tests.tools import fake_dcgmi, fake_nvidia_smi

HERE = Path(__file__).parent
GPUS = {"0": "00000000:52:00.0", "1": "00000000:53:00.0"}
NAMES = {"0000:52:00": Gpu(0), "0000:53:00": Gpu(1)}
ANSWERS = '{"driver": "580.65.06", "count": 0}\n{"end": true}'
MISSING = '{"init": [12]}'


class Near(Subject):
    """Asks tools that behave within this process, which saves most of a test's time."""

    def run(
        self, tool: str, *arguments: str, limit: float = TOOL_LIMIT, grace: float = GRACE
    ) -> Ended:
        state = self.machine.root / ("dcgm.json" if tool == "dcgmi" else "smi.json")
        said = json.loads(state.read_text())
        if said.get("behave") or said.get("process"):
            return super().run(tool, *arguments, limit=limit, grace=grace)
        main = fake_dcgmi.main if tool == "dcgmi" else fake_nvidia_smi.main
        with redirect_stdout(io.StringIO()) as out:
            status = main(self.machine.root, list(arguments))
        return Ended(status, out.getvalue())


class Tools(FakeMachine):
    """Two sound GPUs, DCGM with an engine that answers and nothing to complain of.

    With `process=True` in what they say, tools run as the processes that they are.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.dcgm: dict[str, Any] = {"gpus": GPUS, "results": {}}
        self.smi_said: dict[str, Any] = {"gpus": {each: {} for each in GPUS.values()}}
        for tool in ("dcgmi", "nvidia-smi"):
            fake = HERE / f"fake_{tool.replace('-', '_')}.py"
            self.answer(tool, f'exec {sys.executable} -I -S {fake} {root} "$@"\n')
        self.nvml(ANSWERS)
        self.say()
        self.subject = Near(self.machine, Naming(NAMES, root))

    def nvml(self, said: str, script: str = "") -> None:
        """What the child that asks NVML prints, or does."""
        self.answer("nvml-child", f"cat <<'END'\n{said}\nEND\n{script}\n")

    def say(self, **changes: Any) -> None:
        """Change what DCGM says."""
        self.dcgm.update(changes)
        (self.root / "dcgm.json").write_text(json.dumps(self.dcgm))
        (self.root / "smi.json").write_text(json.dumps(self.smi_said))

    def smi_says(self, **changes: Any) -> None:
        """Change what nvidia-smi says."""
        self.smi_said.update(changes)
        self.say()

    def look(self, name: str) -> tuple[Finding, ...]:
        self.subject.begin()
        return checks.one(name, self.subject)

    def end(self) -> None:
        """Nothing that was left behind outlives the test."""
        for tool in self.subject.tools.values():
            if tool.outstanding:
                os.killpg(tool.outstanding, signal.SIGKILL)
                assert tool._left is not None
                tool._left.wait(5)

    @property
    def calls(self) -> list[str]:
        """What dcgmi was asked."""
        path = self.root / "dcgmi.calls"
        return path.read_text().splitlines() if path.exists() else []


def said(findings: tuple[Finding, ...]) -> set[tuple[str, str, str]]:
    """What is not ok."""
    return {
        (each.part, each.fault or each.verdict.value, each.code)
        for each in findings
        if each.verdict is not Verdict.OK
    }


def well(findings: tuple[Finding, ...]) -> set[str]:
    return {each.part for each in findings if each.verdict is Verdict.OK}
