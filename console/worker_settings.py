"""What the worker process is told by flags, each with its variable `GPUMEND_*`.

Where Temporal and Kubernetes are is not here: their clients read that as their own tools do.
"""

import argparse
import os
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

from console.address import address, host_and_port
from policies.document import default_policy, load
from policies.schema import Policy

ROLES = INCIDENTS, WATCHER, ALL = "incidents", "watcher", "all"
GRACE = timedelta(seconds=20)
"""For running activities to end on SIGTERM; less than the thirty seconds a Pod is given."""
LONGEST_GRACE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Settings:
    """`image` is that of the Pods that run steps on nodes; `policy` None is the default one.

    `metrics` is host and port of `/metrics`; None: it is not served.
    """

    role: str
    cluster: str
    image: str
    policy: Path | None
    grace: timedelta
    metrics: tuple[str, int] | None = None

    @property
    def watches(self) -> bool:
        """Whether this process finds sick nodes and holds them."""
        return self.role in (WATCHER, ALL)

    @property
    def works(self) -> bool:
        """Whether this process works on incidents."""
        return self.role in (INCIDENTS, ALL)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--role", type=_role, default=_env("ROLE", ALL), help=f"one of {', '.join(ROLES)}"
    )
    parser.add_argument("--cluster", default=_env("CLUSTER", "default"), help="name of the cluster")
    parser.add_argument(
        "--policy", type=Path, default=_env("POLICY"), help="policy file of the watcher"
    )
    parser.add_argument(
        "--image",
        default=_env("IMAGE", f"gpumend:{version('gpumend')}"),
        help="image of the Pods that run steps on nodes",
    )
    parser.add_argument(
        "--grace",
        type=_grace,
        default=_env("GRACE", str(GRACE.total_seconds())),
        help="seconds for running steps to end on SIGTERM",
    )
    parser.add_argument(
        "--metrics-address",
        type=address,
        default=_env("METRICS_ADDRESS"),
        metavar="HOST:PORT",
        help="serve Prometheus metrics there, as 127.0.0.1:9464; without it they are not served",
    )


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The parsed flags."""
    return Settings(
        role=arguments.role,
        cluster=arguments.cluster,
        image=arguments.image,
        policy=arguments.policy,
        grace=timedelta(seconds=arguments.grace),
        metrics=host_and_port(arguments.metrics_address) if arguments.metrics_address else None,
    )


def read_policy(settings: Settings) -> Policy:
    """The policy file; raises OSError or `PolicyErrors`."""
    if settings.policy is None:
        return default_policy()
    return load(settings.policy.read_text(), str(settings.policy))


def _role(text: str) -> str:
    """Unlike `choices`, this holds for a default out of the environment too."""
    if text not in ROLES:
        raise argparse.ArgumentTypeError(f"one of {', '.join(ROLES)}, not {text!r}")
    return text


def _grace(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= LONGEST_GRACE.total_seconds():
        raise argparse.ArgumentTypeError(f"1 to 3600 seconds, not {text!r}")
    return seconds


def _env(name: str, default: str | None = None) -> str | None:
    return os.environ.get(f"GPUMEND_{name}", default)
