"""`gpumend bench agent`: the memory of the real agent, on a machine of files, through a storm.

The agent is a process of its own, against a stand-in API server in this one. Its log is a storm of
Xids on eight GPUs; when the last of it is counted, resident memory is read from `/proc`. The floor
is the interpreter with what any agent of ours must import (TLS, HTTP, JSON) and nothing else.
"""

import json
import os
import signal
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
from probes.agent.run import ACCEPT_USER_SPACE
from probes.machine import HOST_EXEC

LINES = 50_000
GPUS = 8
TARGET_MIB = 40
OTHERS = {"node-problem-detector": 40, "gpud": 67}
"""Resident MiB measured for others on such a machine."""
LIMIT = 300.0
"""Seconds after which the benchmark gives up."""
_FLOOR = "import ssl, http.client, json; print(open('/proc/self/status').read())"
_CODES = (95, 48, 94, 79, 31, 119)


def measure(lines: int = LINES) -> dict[str, Any]:
    """Resident memory of the agent at rest, at its peak and after the storm, in MiB."""
    with tempfile.TemporaryDirectory() as folder, _server() as (url, patches):
        root = Path(folder)
        _build(root)
        with _agent(root, url) as pid:
            _until(lambda: patches and _sequence(root) >= 0)
            rest = _resident(pid)
            began = time.monotonic()
            _storm(root, lines)
            _until(lambda: _sequence(root) >= lines)
            took = time.monotonic() - began
            after, peak = _resident(pid), _resident(pid, "VmHWM")
            standing = len(_remembered(root)["standing"])
    return {
        "resident_mib": after,
        "peak_mib": peak,
        "at_rest_mib": rest,
        "floor_mib": _floor(),
        "over_floor": round(after / _floor(), 2),
        "storm_lines_per_second": round(lines / took),
        "patches": len(patches),
        "claims": standing,
        "met": max(after, peak) <= TARGET_MIB,
        "input": {"lines": lines, "gpus": GPUS, "codes": list(_CODES), "tls": False},
        "targets": {"mib": TARGET_MIB, "others_mib": OTHERS},
        "machine": machine.describe(),
    }


def _build(root: Path) -> None:
    for folder in ("dev", "proc/sys/kernel/random", "usr/bin"):
        (root / folder).mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("bench\n")
    (root / "dev/kmsg").write_text("6,0,0,-;Linux version 6\n")
    for index in range(GPUS):
        folder_of = root / f"proc/driver/nvidia/gpus/0000:{0x50 + index:02x}:00.0"
        folder_of.mkdir(parents=True)
        text = f"Bus Location: \t 0000:{0x50 + index:02x}:00.0\nDevice Minor: \t {index}\n"
        (folder_of / "information").write_text(text)


def _storm(root: Path, lines: int) -> None:
    with (root / "dev/kmsg").open("a") as log:
        for number in range(1, lines + 1):
            code = _CODES[number % len(_CODES)]
            gpu = 0x50 + number // 7 % GPUS
            tail = f"pid={number}, name=python3, Ch {number:08x}"
            head = f"4,{number},{number * 9},-;NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}"
            log.write(f"{head}, {tail}\n")


@contextmanager
def _agent(root: Path, url: str) -> Iterator[int]:
    command = [sys.executable, "-m", "console.main", "probe", "--node", "bench"]
    command += ["--root", str(root), "--api-server", url]
    environment = {**os.environ, HOST_EXEC: "", ACCEPT_USER_SPACE: "0"}
    with (root / "log").open("w") as log:
        agent = subprocess.Popen(command, stderr=log, env=environment)  # noqa: S603 - ourselves
    try:
        yield agent.pid
    finally:
        agent.send_signal(signal.SIGTERM)
        agent.wait(30)


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


def _remembered(root: Path) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((root / "var/lib/gpumend/agent.json").read_text())
    return fields


def _sequence(root: Path) -> int:
    try:
        return int(_remembered(root)["sequence"])
    except FileNotFoundError:
        return -1


def _until(so: Any) -> None:
    deadline = time.monotonic() + LIMIT
    while not so():
        if time.monotonic() >= deadline:
            raise TimeoutError(f"the agent did not get there in {LIMIT:.0f} s")
        time.sleep(0.1)


def _resident(pid: int, field: str = "VmRSS") -> float:
    return _mib(Path(f"/proc/{pid}/status").read_text(), field)


def _floor() -> float:
    command = [sys.executable, "-c", _FLOOR]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return _mib(ended.stdout, "VmRSS")


def _mib(status: str, field: str) -> float:
    line = next(each for each in status.splitlines() if each.startswith(f"{field}:"))
    return round(int(line.split()[1]) / 1024, 1)
