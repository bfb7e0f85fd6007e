"""`gpumend probe`: the agent of a node; with `--once`, what it would publish now.

Without an API server (`--api-server`, or the environment of a Pod) it refuses to start: an agent
that nobody hears is worse than none.
"""

import argparse
import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from console import exits, probe_once
from console.address import address, host_and_port
from fleet.check import Check
from probes.agent.api import ApiServer
from probes.agent.exposition import Exposition
from probes.agent.figures import Figures
from probes.agent.once import look_once
from probes.agent.publish import LEASE_PERIOD, Publisher
from probes.agent.run import ACCEPT_USER_SPACE, ROUTINE_PERIOD, start
from probes.checks import ACTIVE, PASSIVE
from probes.checks.dcgm_engine import ADDRESS, is_address
from probes.log import say
from probes.machine import HOST_EXEC, Machine, machine

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("what", nargs="?", choices=("list",), help="list: what each check reads")
    parser.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="name of the Node")
    parser.add_argument("--root", default="/", help="where the machine's files are")
    parser.add_argument("--state", help="where to remember (default: <root>/var/lib/gpumend)")
    parser.add_argument("--api-server", default=_in_cluster(), metavar="URL")
    parser.add_argument("--token-file", type=Path, default=_there(_ACCOUNT / "token"))
    parser.add_argument("--ca-file", type=Path, default=_there(_ACCOUNT / "ca.crt"))
    parser.add_argument("--part-key-file", type=Path, help="key of the parts' identities")
    parser.add_argument(
        "--renew-every",
        type=_period,
        default=LEASE_PERIOD,
        metavar="SECONDS",
        help="between two signs of life; the watcher misses three (default: %(default)s)",
    )
    parser.add_argument(
        "--check-every",
        type=_period,
        default=ROUTINE_PERIOD,
        metavar="SECONDS",
        help="seconds between two rounds of checks while all is well (default: 120)",
    )
    parser.add_argument(
        "--metrics-address",
        type=address,
        default=os.environ.get("GPUMEND_METRICS_ADDRESS") or None,
        metavar="HOST:PORT",
        help="serve Prometheus metrics there, as 0.0.0.0:9465; without it they are not served",
    )
    parser.add_argument(
        "--dcgm-host",
        type=_dcgm_host,
        metavar="HOST:PORT",
        help=f"where a DCGM engine listens that is not this machine's own (or {ADDRESS})",
    )
    parser.add_argument("--once", action="store_true", help="run every check once, print, and end")
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        choices=[Check.KERNEL_LOG, *PASSIVE, *ACTIVE],
        metavar="NAME",
    )
    parser.add_argument("--json", action="store_true", help="with --once or list: JSON")
    parser.add_argument("--page", action="store_true", help="with list: docs/checks.md")


def run(arguments: argparse.Namespace) -> int:
    """Run the agent until SIGTERM, or look once."""
    if arguments.what == "list":
        probe_once.list_checks(arguments.json, arguments.page)
        return exits.OK
    if arguments.dcgm_host:
        os.environ[ADDRESS] = arguments.dcgm_host
    here = machine(arguments.root, arguments.state, os.environ.get(HOST_EXEC))
    try:
        key = _key(arguments.part_key_file)
        here.boot_id()
    except (OSError, ValueError) as problem:
        say("cannot start", problem=str(problem))
        return exits.UNREACHABLE
    if arguments.once:
        accept = os.environ.get(ACCEPT_USER_SPACE) == "1"
        looked = look_once(
            here, key, datetime.now(UTC).replace(microsecond=0), accept, arguments.check
        )
        probe_once.show(looked, arguments.json)
        return probe_once.status_of(looked, bool(arguments.check))
    if not arguments.node or not arguments.api_server:
        say(
            "cannot start",
            problem="needs --node NAME and --api-server URL (or a Pod's environment)",
        )
        return exits.USAGE
    return _watch(arguments, here, key)


def _watch(arguments: argparse.Namespace, here: Machine, key: bytes) -> int:
    server = ApiServer(arguments.api_server, arguments.token_file, arguments.ca_file)
    figures, period = Figures(), arguments.renew_every
    publisher = Publisher(server, arguments.node, lambda: datetime.now(UTC), period, figures)
    agent = start(here, arguments.node, key, publisher, arguments.check_every, figures)

    def end(number: int, frame: FrameType | None) -> None:
        agent.stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if arguments.metrics_address:
        shown = Exposition(host_and_port(arguments.metrics_address), figures.text)
        threading.Thread(target=shown.run, daemon=True).start()
    agent.run()
    say("agent ends", node=arguments.node)
    return exits.OK


def _period(text: str) -> float:
    seconds = float(text.removesuffix("s"))
    if not 1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"1 to 3600 seconds, not {text}")
    return seconds


def _dcgm_host(text: str) -> str:
    if not is_address(text):
        raise argparse.ArgumentTypeError(f"HOST:PORT or unix://PATH, not {text!r}")
    return text


def _key(path: Path | None) -> bytes:
    """Without a key, parts have no keyed identity; everything else works."""
    if path is None or not path.exists():
        return b""
    return path.read_bytes().strip()


def _in_cluster() -> str:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}" if host else ""


def _there(path: Path) -> Path | None:
    return path if path.exists() else None
