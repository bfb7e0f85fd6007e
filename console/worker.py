"""`gpumend worker`: runs the composition root as a process of its own, in place of this one."""

import argparse
import os
import sys

from console import worker_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the worker's own flags: a wrong one is refused here, before anything is started."""
    worker_settings.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Become the worker; returns only if that fails."""
    flags = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in vars(arguments).items()
        if value is not None
    ]
    os.execv(sys.executable, [sys.executable, "-m", "worker", *flags])  # noqa: S606
