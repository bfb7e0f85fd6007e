"""The real agent as a process, on a fake machine, against a stand-in API server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def start_agent(
    root: Path, url: str, state: Path | None = None, **environment: str
) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "console.main", "probe", "--node", "n1", "--root", str(root)]
    command += ["--api-server", url, *(["--state", str(state)] if state else [])]
    log = (state or root).parent / "agent.log"
    with log.open("ab") as errors:
        return subprocess.Popen(
            command, stderr=errors, env={**os.environ, "GPUMEND_HOST_EXEC": "", **environment}
        )


def end(agent: "subprocess.Popen[bytes]", number: int = signal.SIGTERM) -> int:
    agent.send_signal(number)
    return agent.wait(15)


def remembered(state: Path) -> dict[str, Any]:
    """What the agent saved, empty where it has not yet."""
    try:
        fields: dict[str, Any] = json.loads((state / "agent.json").read_text())
    except FileNotFoundError:
        return {}
    return fields


def wait_for(so: Callable[[], object], seconds: float = 30.0) -> None:
    """Until `so()` is true; files give no event, so look often and fail loudly at the end."""
    deadline = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.05)
