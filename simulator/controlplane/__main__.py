"""`python -m simulator.controlplane`: build and cache a real etcd and kube-apiserver."""

import argparse
import subprocess
import sys
import time

from simulator.controlplane.build import BuildError, build, report
from simulator.controlplane.programs import PROGRAMS, Program, cache_root


def main() -> int:
    """Build what is missing. 0: all there; 1: a build failed (Go missing, no network, …)."""
    parser = argparse.ArgumentParser(prog="controlplane", description=__doc__)
    parser.add_argument("--where", action="store_true", help="print the cache folder and stop")
    if parser.parse_args().where:
        sys.stdout.write(f"{cache_root()}\n")
        return 0
    try:
        for program in PROGRAMS.values():
            _build(program)
    except (BuildError, subprocess.TimeoutExpired) as error:
        report(f"controlplane: {error}")
        return 1
    return 0


def _build(program: Program) -> None:
    if program.built:
        report(f"{program.name} {program.version}: in {program.path}")
        return
    report(f"{program.name} {program.version}: building, some minutes the first time ...")
    start = time.monotonic()
    build(program)
    took_s = time.monotonic() - start
    report(f"{program.name} {program.version}: built in {took_s:.0f} s, {program.path}")


if __name__ == "__main__":
    sys.exit(main())
