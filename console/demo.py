"""`gpumend demo`: a small fleet that breaks by a script, repaired before your eyes.

Exit status: 0 every fault ended as scripted and no promise was broken; 1 something else happened;
2 bad usage; 3 a program did not start.
"""

import argparse
import asyncio
import json
import signal
import sys

from console import exits
from simulator.demo.fleet import FEWEST_NODES, LARGE_FROM, MOST_NODES
from simulator.demo.kills import Kill, parse_kill
from simulator.demo.outcome import RunOutcome, as_json, in_words
from simulator.demo.run import Run
from simulator.demo.settings import ABSENTEES, SABOTAGES, Settings
from simulator.demo.stage import Stage
from simulator.demo.supervisor import NotStarted
from simulator.demo.view import choose


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--seed", type=int, default=1, help="which nodes and parts, when and how")
    parser.add_argument(
        "--nodes",
        type=_nodes,
        default=32,
        help=f"{FEWEST_NODES} to {MOST_NODES}, default 32; under {LARGE_FROM} a short script plays",
    )
    parser.add_argument(
        "--approve-yourself",
        action="store_true",
        help="the replacement waits for your yes; the run says how you give it",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON, only that")
    parser.add_argument(
        "--keep", action="store_true", help="leave everything running until Ctrl-C, say where"
    )
    parser.add_argument(
        "--kill",
        type=_kill,
        metavar="PROCESS@STEP[:after]",
        help="kill a process at a call that changes the world, and start it again",
    )
    parser.add_argument("--without", choices=ABSENTEES, default="", help="take it away for a while")
    parser.add_argument("--for", dest="absence", type=_seconds, default=20.0, metavar="20s")
    parser.add_argument("--sabotage", choices=SABOTAGES, default="", help="break this promise")
    parser.add_argument(
        "--real", action="store_true", help="a real kube-apiserver, built by `poe controlplane`"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the demo."""
    if arguments.real and (arguments.kill or arguments.without):
        print("demo: --kill and --without need the simulated API server", file=sys.stderr)
        return exits.USAGE
    if arguments.kill and arguments.kill.call.large and arguments.nodes < LARGE_FROM:
        print(f"demo: {arguments.kill} needs at least {LARGE_FROM} nodes", file=sys.stderr)
        return exits.USAGE
    settings = Settings(
        seed=arguments.seed,
        nodes=arguments.nodes,
        as_json=arguments.json,
        keep=arguments.keep,
        approve_yourself=arguments.approve_yourself,
        kill=arguments.kill,
        without=arguments.without,
        absence=arguments.absence,
        sabotage=arguments.sabotage,
        real=arguments.real,
    )
    try:
        outcome = asyncio.run(_run(settings))
    except NotStarted as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return exits.UNREACHABLE
    except (KeyboardInterrupt, asyncio.CancelledError):
        return exits.FOUND
    return exits.OK if outcome.well else exits.FOUND


async def _run(settings: Settings) -> RunOutcome:
    """End everything on SIGTERM and SIGHUP as on Ctrl-C; with `keep`, that is how it ends."""
    done: list[RunOutcome] = []

    def finished(outcome: RunOutcome, stage: Stage) -> None:
        done.append(outcome)
        print(json.dumps(as_json(outcome)) if settings.as_json else in_words(outcome), flush=True)
        if settings.keep:
            print(_where(stage), file=sys.stderr if settings.as_json else sys.stdout, flush=True)

    view = choose(settings.as_json)
    task = asyncio.current_task()
    assert task
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await Run(settings, view, finished).run()
    except asyncio.CancelledError:
        if done:
            return done[0]
        raise
    finally:
        view.close()


def _where(stage: Stage) -> str:
    return "\n".join(
        (
            "",
            "Everything is still running; Ctrl-C ends it.",
            f"  export KUBECONFIG={stage.kubeconfig}",
            f"  export TEMPORAL_ADDRESS={stage.temporal} TEMPORAL_NAMESPACE=gpumend",
            f"  Temporal UI {stage.ui}",
            f"  logs {stage.directory / 'logs'}",
        )
    )


def _nodes(text: str) -> int:
    count = int(text)
    if not FEWEST_NODES <= count <= MOST_NODES:
        raise argparse.ArgumentTypeError(f"{FEWEST_NODES} to {MOST_NODES} nodes, not {count}")
    return count


def _kill(text: str) -> Kill:
    try:
        return parse_kill(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from problem


def _seconds(text: str) -> float:
    seconds = float(text.removesuffix("s"))
    if not 0 < seconds <= 300:
        raise argparse.ArgumentTypeError(f"up to 300s, not {text}")
    return seconds
