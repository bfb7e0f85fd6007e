"""Entry point of the `gpumend` command.

A subcommand is a module with `configure(parser)` and `run(arguments) -> exit status`. It is
imported only when it is asked for: the node agent must stay small, so `gpumend probe` may not
pay for Temporal, Kubernetes and pydantic.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from console import exits

COMMANDS: Mapping[str, tuple[str, str]] = {
    "read-log": ("console.read_log", "read a kernel log: a reading a line"),
    "probe": ("console.probe", "run the node agent, or its checks once"),
    "node-step": ("console.node_step", "run one step on this node, as a pinned Pod does"),
    "policy": ("console.policy", "check, explain or describe a policy file"),
    "incidents": ("console.incidents", "which nodes have an incident, and what stops it"),
    "show": ("console.show", "one node: why it is held, what comes next, how it came to that"),
    "approve": ("console.order", "say yes to the question that an incident asks"),
    "deny": ("console.order", "say no to it"),
    "pause": ("console.order", "nothing more is begun for a node until resumed"),
    "resume": ("console.order", "go on after a pause or a hand-off"),
    "skip": ("console.order", "leave out the step that comes next or is waited for"),
    "cancel": ("console.order", "end an incident: undo the hold, repair nothing"),
    "release": ("console.order", "give a node back on your word"),
    "open": ("console.open_incident", "hold a node for what you have found"),
    "budget": ("console.budget", "how many nodes may be disrupted at once, who holds, who waits"),
    "close-breaker": ("console.close_breaker", "go on where too much was sick at once"),
    "doctor": ("console.doctor", "what is reachable, registered, allowed, and what mends the rest"),
    "worker": ("console.worker", "run the Temporal worker"),
    "demo": ("console.demo", "a small fleet that breaks and is repaired"),
    "bench": ("console.bench", "benchmarks, as ratios against a floor of the same run"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status (see `console.exits`)."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    chosen = arguments[0] if arguments else ""
    if chosen not in COMMANDS:
        return _overview(arguments)
    command, parser = prepare(chosen)
    return _run(parser.prog, command, parser.parse_args(arguments[1:]))


def prepare(name: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    """The module of a subcommand, and the parser of its arguments."""
    parser = argparse.ArgumentParser(prog=f"gpumend {name}", description=COMMANDS[name][1])
    command = _load(name)
    command.configure(parser)
    return command, parser


def _run(prog: str, command: ModuleType, arguments: argparse.Namespace) -> int:
    """Run it; whoever read our output and had enough is nobody's fault."""
    try:
        status: int = command.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        return exits.OK
    except OSError as problem:  # what a command reads it handles itself: this is what it wrote
        _forget_output()
        print(f"{prog}: {problem.strerror or problem}", file=sys.stderr)
        return exits.UNREACHABLE
    return status


def _forget_output() -> None:
    """What is still in the buffer would fail again, and loudly, when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _load(name: str) -> ModuleType:
    return importlib.import_module(COMMANDS[name][0])


def _overview(arguments: Sequence[str]) -> int:
    from importlib.metadata import version  # the agent need not pay for it

    parser = argparse.ArgumentParser(
        prog="gpumend",
        description="Durable remediation of sick GPU nodes on Kubernetes.",
        epilog="\n".join(f"  {name:<13} {purpose}" for name, (_, purpose) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version("gpumend"))
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of:")
    if arguments:
        parser.parse_args(arguments)
    parser.print_help(sys.stderr)
    return exits.USAGE


if __name__ == "__main__":
    sys.exit(main())
