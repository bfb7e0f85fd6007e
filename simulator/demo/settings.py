"""What a run is asked to do, and where its things lie."""

from dataclasses import dataclass
from pathlib import Path

from simulator.demo.kills import Kill

POLICY = Path(__file__).with_name("policy.yaml")
CLUSTER = "demo"
SABOTAGES = ("release", "unknown")
ABSENTEES = ("temporal", "api")

RUN_SECONDS = 90.0
"""A run that is disturbed may take as long again, and the disturbance on top."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One run. `without` goes away for `absence` seconds; `real` uses a real kube-apiserver."""

    seed: int = 1
    nodes: int = 8
    as_json: bool = False
    keep: bool = False
    kill: Kill | None = None
    without: str = ""
    absence: float = 20.0
    sabotage: str = ""
    real: bool = False

    @property
    def limit(self) -> float:
        """Seconds until a run that has not ended is given up."""
        disturbed = self.kill is not None or bool(self.without) or bool(self.sabotage) or self.real
        return RUN_SECONDS * 2 + self.absence if disturbed else RUN_SECONDS
