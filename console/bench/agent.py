"""`gpumend bench agent`: the memory of the real agent, on a machine of files, through a storm.

The agent is a process of its own, against a stand-in API server in this one. Its log is a storm of
Xids on eight GPUs; when the last of it is counted, resident memory is read from `/proc`. The floor
is the interpreter with what any agent of ours must import (TLS, HTTP, JSON) and nothing else.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from console.bench import machine
from console.bench.agent_process import AgentProcess, running, until
from console.bench.machine import resident
from probes.machine import Machine
from probes.machine import machine as machine_at

LINES = 50_000
GPUS = 8
TARGET_MIB = 40
OTHERS = {"node-problem-detector": 40, "gpud": 67}
"""Resident MiB measured for others on such a machine."""
SELDOM = 3_600
"""Seconds between two rounds of checks: what those cost is for `bench probes`."""
_BATCH = 512
_FLOOR = "import ssl, http.client, json; print(open('/proc/self/status').read())"
_CODES = (95, 48, 94, 79, 31, 119)


def measure(lines: int = LINES) -> dict[str, Any]:
    """Resident memory of the agent at rest, at its peak and after the storm, in MiB."""
    with tempfile.TemporaryDirectory() as folder, _server() as (url, patches):
        here, token = _build(Path(folder) / "root"), Path(folder) / "token"
        token.write_text("none")
        with running(here, url, token, SELDOM, {}) as agent:
            until(lambda: patches)
            rest = resident(agent.pid)
            took = _storm(here, agent, lines)
            after, peak = resident(agent.pid), resident(agent.pid, "VmHWM")
            standing = len(_remembered(here)["standing"])
    floor = _floor()
    return {
        "resident_mib": after,
        "peak_mib": peak,
        "at_rest_mib": rest,
        "floor_mib": floor,
        "over_floor": round(after / floor, 2),
        "storm_lines_per_second": round(lines / took),
        "patches": len(patches),
        "claims": standing,
        "met": max(after, peak) <= TARGET_MIB,
        "input": {"lines": lines, "gpus": GPUS, "codes": list(_CODES), "tls": False},
        "targets": {"mib": TARGET_MIB, "others_mib": OTHERS},
        "machine": machine.describe(),
    }


def _build(root: Path) -> Machine:
    for folder in ("dev", "proc/sys/kernel/random", "usr/bin"):
        (root / folder).mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("bench\n")
    (root / "dev/kmsg").touch()
    for index in range(GPUS):
        folder_of = root / f"proc/driver/nvidia/gpus/0000:{0x50 + index:02x}:00.0"
        folder_of.mkdir(parents=True)
        text = f"Bus Location: \t 0000:{0x50 + index:02x}:00.0\nDevice Minor: \t {index}\n"
        (folder_of / "information").write_text(text)
    return machine_at(str(root), None, "")


def _storm(here: Machine, agent: AgentProcess, lines: int) -> float:
    """Seconds until all of it is counted and kept."""
    began, last = time.monotonic(), agent.lines + lines - 1
    for start in range(0, lines, _BATCH):
        agent.say([_line(number) for number in range(start, min(start + _BATCH, lines))])
    until(lambda: _remembered(here)["sequence"] >= last)
    return time.monotonic() - began


def _line(number: int) -> str:
    code, gpu = _CODES[number % len(_CODES)], 0x50 + number // 7 % GPUS
    tail = f"pid={number}, name=python3, Ch {number:08x}"
    return f"NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, {tail}"


@contextmanager
def _server() -> Iterator[tuple[str, list[str]]]:
    """Answers every call with an empty object; the second value collects patches of conditions."""
    patches: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command == "PATCH" and self.path.endswith("/status"):
                patches.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_PATCH = do_POST = do_GET  # noqa: N815 - names of the library

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - of the library
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", patches
    finally:
        server.shutdown()
        server.server_close()


def _remembered(here: Machine) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((here.state / "agent.json").read_text())
    return fields


def _floor() -> float:
    command = [sys.executable, "-c", _FLOOR]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return machine.mib(ended.stdout, "VmRSS")
