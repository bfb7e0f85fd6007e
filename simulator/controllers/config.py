"""The file that the controllers are started with."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from simulator.controllers.cloud import Instance
from simulator.controllers.owners import Daemon, Workload


@dataclass(frozen=True, slots=True)
class ControllersConfig:
    """`ca` is empty for plain http."""

    url: str
    ca: str
    token: str
    workloads: tuple[Workload, ...]
    daemons: tuple[Daemon, ...]
    instances: tuple[Instance, ...] = ()


def write_controllers(path: Path, config: ControllersConfig) -> None:
    """Write it; it holds a token."""
    path.touch(mode=0o600)
    path.write_text(json.dumps(asdict(config)))


def read_controllers(path: Path) -> ControllersConfig:
    """Read it back."""
    fields = json.loads(path.read_text())
    workloads = tuple(Workload(**each) for each in fields.pop("workloads"))
    daemons = tuple(Daemon(**each) for each in fields.pop("daemons"))
    instances = tuple(Instance(**each) for each in fields.pop("instances"))
    return ControllersConfig(**fields, workloads=workloads, daemons=daemons, instances=instances)
