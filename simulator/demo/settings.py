"""What a run is asked to do, and where its things lie."""

from dataclasses import dataclass
from pathlib import Path

from simulator.demo.kills import Kill

POLICY = Path(__file__).with_name("policy.yaml")
CLUSTER = "demo"
SABOTAGES = ("release", "unknown")
ABSENTEES = ("temporal", "api")

RUN_SECONDS = 180.0
"""A run takes a third of this; one that is disturbed may take as long again, and the absence."""


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
    def unseen(self) -> bool:
        """Whether a fault may come and pass while nobody could be told of it.

        A new watcher leads when the Lease of the killed one has run out; a flap lasts no longer.
        """
        blind = self.kill is not None and self.kill.process == "watcher"
        return self.without == "api" or blind

    @property
    def limit(self) -> float:
        """Seconds until a run that has not ended is given up."""
        disturbed = self.kill is not None or bool(self.without) or bool(self.sabotage) or self.real
        return RUN_SECONDS * 2 + self.absence if disturbed else RUN_SECONDS
