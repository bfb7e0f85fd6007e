"""`gpumend bench`: measurements, each with its input and machine.

A benchmark is a module with `measure(lines) -> result`; it is imported only when asked for.
"""

import argparse
import importlib
import json
from collections.abc import Mapping
from typing import Any

from console import exits

BENCHMARKS: Mapping[str, tuple[str, str]] = {
    "read-log": ("console.bench.read_log", "kernel log lines a second, a storm of Xids"),
    "agent": ("console.bench.agent", "resident memory of the node agent through a storm"),
    "probes": ("console.bench.probes", "cost of the node agent, hung tools, line to condition"),
    "budget": ("console.bench.budget", "a storm of asks for leases, and one decision"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options; all benchmarks run where none is named."""
    names = ", ".join(f"{name} ({about})" for name, (_, about) in BENCHMARKS.items())
    parser.add_argument("name", nargs="?", choices=BENCHMARKS, metavar="NAME", help=names)
    parser.add_argument("--json", action="store_true", help="one JSON object a benchmark")


def run(arguments: argparse.Namespace) -> int:
    """Run one or all benchmarks; FOUND where one misses its target."""
    met = True
    for name in [arguments.name] if arguments.name else BENCHMARKS:
        result: dict[str, Any] = importlib.import_module(BENCHMARKS[name][0]).measure()
        met = met and result["met"]
        _print(name, result, arguments.json)
    return exits.OK if met else exits.FOUND


def _print(name: str, result: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"benchmark": name, **result}), flush=True)
        return
    print(name)
    for key, value in result.items():
        print(f"  {key:<28} {value}", flush=True)
