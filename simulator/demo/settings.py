"""What a run is asked to do, and where its things lie."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simulator.demo.fleet import LARGE_FROM
from simulator.demo.kills import Kill

POLICY = Path(__file__).with_name("policy.yaml")
"""Without budgets: those depend on the fleet."""
CLUSTER = "demo"
SABOTAGES = ("budget", "release", "unknown")
ABSENTEES = ("temporal", "api")
TIGHT = {"pool": 1}
"""The budget of a run whose budget is sabotaged, so that it is surely needed."""

SMALL_SECONDS, LARGE_SECONDS = 180.0, 300.0
"""A run takes a third or half of this; one that is disturbed may take as long again, and the
absence."""
YOUR_SECONDS = 1_800.0
"""How long you may take to approve."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One run. `without` goes away for `absence` seconds; `real` uses a real kube-apiserver.

    `approve_yourself`: the replacement waits for the one who looks at the run. `worker`: the module
    that works on incidents, and its first arguments. `policy`: a policy file without budgets.
    """

    seed: int = 1
    nodes: int = 32
    as_json: bool = False
    keep: bool = False
    approve_yourself: bool = False
    kill: Kill | None = None
    without: str = ""
    absence: float = 20.0
    sabotage: str = ""
    real: bool = False
    worker: tuple[str, ...] = ("worker",)
    policy: Path = POLICY

    @property
    def large(self) -> bool:
        """Whether the long script plays."""
        return self.nodes >= LARGE_FROM

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
        seconds = LARGE_SECONDS if self.large else SMALL_SECONDS
        disturbed = self.kill is not None or bool(self.without) or bool(self.sabotage) or self.real
        limit = seconds * 2 + self.absence if disturbed else seconds
        return limit + (YOUR_SECONDS if self.approve_yourself else 0.0)

    def budgets(self, of_fleet: Mapping[str, int]) -> Mapping[str, int]:
        """The budgets of this run's policy."""
        return {**of_fleet, **TIGHT} if self.sabotage == "budget" else of_fleet


def write_policy(path: Path, budgets: Mapping[str, int], policy: Path = POLICY) -> Path:
    """The policy of a run: the demo's or another, with the budgets of its fleet."""
    lines = [f"  - {{scope: {scope}, max: {most}}}" for scope, most in budgets.items()]
    path.write_text("\n".join([policy.read_text(), "budgets:", *lines, ""]))
    return path
