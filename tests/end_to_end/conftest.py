"""Runs the demo as people do, in a process of its own, and looks that it leaves nothing behind."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LIMIT_SECONDS = 300


@dataclass(frozen=True)
class Demo:
    """A finished run: its exit status, its summary, and what it printed."""

    status: int
    summary: dict[str, Any]
    printed: str

    @property
    def broken(self):
        return {each["rule"] for each in self.summary["violations"]}


@pytest.fixture
def demo(tmp_path):
    """Run the demo with these arguments; fails where a process or a directory is left behind."""

    def run(*arguments):
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        command = [sys.executable, "-m", "console.main", "demo", "--json", *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert list(Path(tmp_path).glob("gpumend-demo-*")) == [], printed
        assert left_behind(str(tmp_path)) == [], printed
        assert done.stdout.count("\n") == 1, printed
        return Demo(done.returncode, json.loads(done.stdout), printed)

    return run


def left_behind(place):
    """Command lines of processes that still use a place."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if place in line]
