"""`python -m simulator.apiserver`: run the emulated API server until SIGTERM or SIGINT."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from simulator.apiserver.server import ApiServer


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="apiserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--dir", type=Path, required=True, help="state; found again at next start")
    parser.add_argument("--tokens", type=Path, help='token,user,uid,"group,group" lines')
    parser.add_argument("--audit", type=Path, help="default: audit.log in --dir")
    parser.add_argument(
        "--disruption-controller", action="store_true", help="keep the status of PDBs"
    )
    return parser.parse_args()


async def _serve(arguments: argparse.Namespace) -> None:
    server = ApiServer(
        arguments.dir,
        port=arguments.port,
        tokens=arguments.tokens,
        audit=arguments.audit,
        disruption_controller=arguments.disruption_controller,
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with server:
        endpoint = server.endpoint
        config = endpoint.write_kubeconfig(arguments.dir / "kubeconfig")
        kubectl = endpoint.write_kubeconfig(arguments.dir / "kubectl.config", kubectl=True)
        sys.stdout.write(f"ready url={endpoint.url} kubeconfig={config} kubectl={kubectl}\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(_arguments()))
