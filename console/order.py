"""`gpumend approve|deny|pause|resume|skip|cancel|release NODE`: what people tell an open incident.

Whether it makes sense is the workflow's to say: its answer, or its refusal, is printed as it is.
Exit status: 0 taken, 1 refused, 2 no such incident or bad usage, 3 no answer.
"""

import argparse
import getpass
import json
import shlex
import sys
from datetime import UTC, datetime

from activities.adapters.temporal_reading import Run, TemporalReading
from console import exits, servers
from console.decision_words import comes
from console.which import node_name, plain, the_open_run
from fleet.decision import Ask
from fleet.errors import Refused
from fleet.names import QUERY_PLAN
from fleet.order import ANSWERS, MOST_CHARACTERS, Said, Verb
from workflows.node_remediation import Plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments; which verb it is says the name of the command."""
    parser.add_argument("node", type=node_name, metavar="NODE")
    add_who_and_why(parser)
    if Verb(parser.prog.split()[-1]) in ANSWERS:
        parser.add_argument("--ask", default="", help="id of the question that this answers")
    parser.add_argument("--cluster", type=plain, default=servers.default_cluster())
    parser.add_argument("--json", action="store_true", help="print JSON, only that")
    parser.set_defaults(verb=Verb(parser.prog.split()[-1]))


def add_who_and_why(parser: argparse.ArgumentParser) -> None:
    """The two that every word of a person needs, and which are on record with it."""
    parser.add_argument("--reason", required=True, type=words, help="why; it is on record")
    parser.add_argument("--actor", type=words, default=actor(), help="who; default: your login")


def actor() -> str:
    """Who you are to this machine. Temporal does not check it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return "unknown"


def run(arguments: argparse.Namespace) -> int:
    """Give the order."""
    return servers.run(arguments.verb.value, lambda: _run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    verb: Verb = arguments.verb
    reading = await servers.need_temporal()
    async with servers.kubernetes() as kubernetes:
        found = await the_open_run(reading, kubernetes, arguments.cluster, arguments.node)
    ask = arguments.ask if verb in ANSWERS else ""
    if verb in ANSWERS and not ask:
        ask = await _asked_for(reading, found, arguments)
        if not ask:
            return exits.USAGE
    said = Said(arguments.actor, arguments.reason, ask)
    answer = await reading.order(found.workflow_id, verb, said)
    if arguments.json:
        print(json.dumps({"order": verb, "workflow_id": found.workflow_id, "answer": answer}))
    else:
        print(f"{arguments.node}: {answer}")
    return exits.OK


async def _asked_for(reading: TemporalReading, run: Run, arguments: argparse.Namespace) -> str:
    """The id of the pending question, typed by who has read it; empty where nobody could.

    A yes is given to what was read: so it is shown, and never taken for granted.
    """
    plan = await reading.ask(run.workflow_id, QUERY_PLAN, Plan, datetime.now(UTC))
    question = plan.next
    if not isinstance(question, Ask) or not question.id:
        raise Refused(0, "no-question", f"no question of {arguments.node} waits for a yes or a no")
    for line in shown(question):
        print(line, file=sys.stderr)
    if not sys.stdin.isatty():
        parts = ("gpumend", arguments.verb.value, arguments.node, "--ask", question.id)
        command = shlex.join((*parts, "--reason", arguments.reason))
        print(f"To answer it, name it: {command}", file=sys.stderr)
        return ""
    print(f"Type its id to {arguments.verb}: ", end="", file=sys.stderr, flush=True)
    typed = sys.stdin.readline().strip()
    if typed != question.id:
        print(f"{typed!r} is not its id; nothing was sent", file=sys.stderr)
        return ""
    return typed


def shown(question: Ask) -> tuple[str, ...]:
    """The question with what it rests on."""
    return (
        comes(question),
        *(f"  - {each}" for each in (*question.reasons, *question.basis.facts)),
        f"  id: {question.id}",
    )


def words(text: str) -> str:
    """An argument in words, as argparse wants it: neither empty nor a novel."""
    if not text.strip() or len(text) > MOST_CHARACTERS:
        raise argparse.ArgumentTypeError(f"1 to {MOST_CHARACTERS} characters")
    return text.strip()
