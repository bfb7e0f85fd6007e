"""`gpumend bench probes`: what the node agent costs, what hangs beside it, and how fast it tells.

On a simulated machine of eight GPUs and 32 EFA links, with the real agent as a process and the
simulator's API server over HTTP. It takes about four minutes.
"""

import tempfile
from pathlib import Path
from typing import Any

from console.bench import machine, probes_cost, probes_hung, probes_latency, probes_machine
from console.bench.agent_process import running
from console.bench.probes_cost import Place
from console.bench.probes_server import serving

P50_MS, P99_MS = 50, 250


def measure(samples: int = probes_latency.SAMPLES) -> dict[str, Any]:
    """Each figure with whether it is met; `met` where all are."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "api") as server:
        here, environment = probes_machine.build(Path(folder))
        place = Place(here, server, environment)
        cost = probes_cost.measure(place)
        every = probes_cost.SELDOM
        with running(here, server.url, server.token, every, environment) as agent:
            quiet = probes_latency.quiet(agent, server, samples)
            storm = probes_latency.in_storm(agent, server, samples)
        stuck = Path(folder) / "stuck"
        stuck.mkdir()
        hung = probes_hung.measure(probes_machine.build(stuck)[0])
    latency = {"quiet": probes_latency.summed(quiet), "storm": probes_latency.summed(storm)}
    return _result(cost, latency, hung, environment, samples)


def _result(cost: Any, latency: Any, hung: Any, environment: Any, samples: int) -> dict[str, Any]:
    in_storm = latency["storm"]
    fast = in_storm["p50_ms"] <= P50_MS and in_storm["p99_ms"] <= P99_MS
    figures = {"cost": probes_cost.met(cost), "latency": fast, "hung": probes_hung.met(hung)}
    return {
        **cost,
        "line_to_condition": latency,
        **hung,
        "met_each": figures,
        "met": all(figures.values()),
        "input": {
            "gpus": 8,
            "adapters": 32,
            "nvml": probes_machine.REAL if environment else probes_machine.PLAYED,
            "rounds": probes_cost.ROUNDS,
            "idle_seconds": probes_cost.IDLE_SECONDS,
            "samples": samples,
            "storm_lines": probes_latency.STORM_LINES,
            "log": "fifo",
            "code": "compiled, as in our image",
            "tls": False,
        },
        "targets": {
            "agent_mib": probes_cost.AGENT_MIB,
            "child_mib": probes_cost.CHILD_MIB,
            "core_percent": probes_cost.PERCENT,
            "p50_ms": P50_MS,
            "p99_ms": P99_MS,
            "late_seconds": probes_hung.LATE_LIMIT,
        },
        "machine": machine.describe(),
    }
