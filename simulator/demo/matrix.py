"""Runs the demo once for every kill: `python -m simulator.demo.matrix [FILTER]`.

About a minute a kill, two where it needs the long script, one after another. FILTER is a part of a
kill's name, like `worker@drain`. Exit status 1 if any run did not end as it does without a kill.
"""

import subprocess
import sys
import time

from simulator.demo.kills import MATRIX, Kill

FEW, MANY, SEED = "8", "32", "1"


def main(wanted: str) -> int:
    """Run all kills whose name has `wanted` in it; return the exit status."""
    chosen = [kill for kill in MATRIX if wanted in str(kill)]
    failed = [kill for kill in chosen if not _survives(kill)]
    _say(f"{len(chosen) - len(failed)} of {len(chosen)} kills survived")
    return 1 if failed or not chosen else 0


def _survives(kill: Kill) -> bool:
    started = time.monotonic()
    nodes = MANY if kill.call.large else FEW
    command = [sys.executable, "-m", "console.main", "demo", "--nodes", nodes, "--seed", SEED]
    command += ["--kill", str(kill)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    word = "FAILED" if run.returncode else "ok"
    _say(f"{kill!s:<28} {word} {time.monotonic() - started:.0f} s")
    if run.returncode:
        _say(run.stdout[-4000:] + run.stderr[-2000:])
    return run.returncode == 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
