"""`gpumend worker`: runs the composition root as a process of its own, in place of this one."""

import argparse
import os
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Everything after the command belongs to `python -m worker`, which explains it."""
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="see gpumend worker -- --help")


def run(arguments: argparse.Namespace) -> int:
    """Become the worker; returns only if that fails."""
    rest = [each for each in arguments.rest if each != "--"]
    os.execv(sys.executable, [sys.executable, "-m", "worker", *rest])  # noqa: S606
