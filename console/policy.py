"""`gpumend policy`: check a policy file, put it in words, print its schema and reference page.

Reading the file is all that happens here; what is right or wrong is said by `policies`.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from console import exits
from fleet.fault import FaultName
from policies.document import PolicyErrors, default_policy, load
from policies.explain import explain, render, render_proving
from policies.meanings import MEANING
from policies.mistakes import Mistake
from policies.reference import json_schema, reference
from policies.schema import Policy

STDIN = "-"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's own subcommands."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="say every mistake of a policy file")
    check.add_argument("file", metavar="FILE", help="policy file, or - for standard input")
    check.add_argument("--json", action="store_true", help="print the result as JSON")
    actions.add_parser("schema", help="print the JSON schema, for editors")
    actions.add_parser("reference", help="print the reference page (docs/policy.md)")
    words = actions.add_parser("explain", help="the ladder in words, with its times")
    words.add_argument("file", metavar="FILE", nargs="?", help="default: the shipped policy")
    words.add_argument("--fault", type=_fault, metavar="NAME", help="only this fault")
    words.add_argument("--json", action="store_true", help="print the ladder as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run one action and return its exit status."""
    if arguments.action == "schema":
        print(json.dumps(json_schema(), indent=2))
    elif arguments.action == "reference":
        print(reference(), end="")
    elif arguments.action == "explain":
        return _explain(arguments)
    else:
        return _check(arguments)
    return exits.OK


def _check(arguments: argparse.Namespace) -> int:
    policy, mistakes = None, []
    try:
        policy = _read(arguments.file)
    except PolicyErrors as errors:
        mistakes = [asdict(each) for each in errors.mistakes]
        print(f"{errors}\n{_count(len(mistakes))}", file=sys.stderr)
    except OSError as problem:
        status = _unreadable(arguments.file, problem)
        if arguments.json:
            print(json.dumps({"ok": False, "digest": None, "mistakes": [_no_file(arguments)]}))
        return status
    if arguments.json:
        digest = policy.digest if policy else None
        print(json.dumps({"ok": policy is not None, "digest": digest, "mistakes": mistakes}))
    elif policy:
        print(_summary(_name(arguments.file), policy))
    return exits.OK if policy else exits.USAGE


def _explain(arguments: argparse.Namespace) -> int:
    try:
        policy = _read(arguments.file) if arguments.file else default_policy()
    except PolicyErrors as errors:
        print(errors, file=sys.stderr)
        return exits.USAGE
    except OSError as problem:
        return _unreadable(arguments.file, problem)
    names = [arguments.fault] if arguments.fault else list(FaultName)
    if arguments.json:
        print(json.dumps([_as_json(policy, name) for name in names]))
    else:
        more = [] if arguments.fault else [render_proving(policy)]
        print("\n\n".join([*(render(policy, name) for name in names), *more]))
    return exits.OK


def _as_json(policy: Policy, name: FaultName) -> dict[str, object]:
    ladder = [asdict(line) for line in explain(policy, name)]
    return {"fault": name, "meaning": MEANING[name], "ladder": ladder}


def _read(file: str) -> Policy:
    text = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    return load(text, _name(file))


def _name(file: str) -> str:
    return "standard input" if file == STDIN else file


def _unreadable(file: str, problem: OSError) -> int:
    print(f"{file}: cannot be read: {problem.strerror or problem}", file=sys.stderr)
    return exits.USAGE


def _no_file(arguments: argparse.Namespace) -> dict[str, object]:
    """A mistake about the file as a whole, in the shape of all others."""
    what, remedy = "the file cannot be read", "name a file that is there and may be read"
    return asdict(Mistake(_name(arguments.file), 0, 0, "", what, remedy))


def _summary(name: str, policy: Policy) -> str:
    unlisted = [each.value for each in FaultName if each not in policy.faults]
    rest = f"; not listed, so held and handed to a person: {', '.join(unlisted)}" * bool(unlisted)
    return f"{name}: no mistakes; digest {policy.digest}, {len(policy.faults)} faults{rest}"


def _count(mistakes: int) -> str:
    return "1 mistake" if mistakes == 1 else f"{mistakes} mistakes"


def _fault(text: str) -> FaultName:
    try:
        return FaultName(text)
    except ValueError as problem:
        known = ", ".join(FaultName)
        raise argparse.ArgumentTypeError(f"{text!r} is not a fault; one of {known}") from problem
