"""`python -m simulator.provider --dir DIR`: a reference provider; prints `ready url=...`."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from simulator.provider.server import CHANGES, ProviderServer


async def serve(options: argparse.Namespace) -> None:
    """Serve until told to stop."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    changes = [each for each in options.changes.split(",") if each]
    async with ProviderServer(
        options.dir,
        port=options.port,
        changes=changes,
        token=options.token,
        seconds=options.seconds,
    ) as server:
        for node in options.machine:
            if server.records.machine(node) is None:
                server.machines.add(node)
        sys.stdout.write(f"ready url={server.url}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Parse the flags and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True, help="where operations are kept")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--changes", default=",".join(CHANGES), help="what it can do")
    parser.add_argument("--token", default="", help="the bearer token that it asks for")
    parser.add_argument("--seconds", type=float, default=0.0, help="what a change takes")
    parser.add_argument("--machine", action="append", default=[], help="a node name that is known")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
