"""`gpumend close-breaker SCOPE`: a person has found why so much was sick at once, and says go on.

It writes the word into the ConfigMap of the breakers; the watcher heeds it and lets the nodes that
it held back go at a pace. Without SCOPE it says which breakers are open, and why.
Exit status: 0 written, or none is open; 1 some are open; 2 no such breaker; 3 nobody answers.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_jsonable_python

from console import exits, servers
from console.order import actor, words
from console.servers import Away
from console.table import clock, length, table
from fleet.errors import NotFound, Transient
from fleet.ports import Json, Kubernetes, PatchType
from intake.breaker_record import CLOSE, PATH, close_key, parse_circuit
from policies.breaker import Circuit, Phase


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("scope", nargs="?", default="", metavar="SCOPE", help="like pool/training")
    parser.add_argument("--reason", type=words, help="why; it is on record")
    parser.add_argument("--actor", type=words, default=actor(), help="who; default: your login")
    parser.add_argument("--json", action="store_true", help="print JSON, only that")


def run(arguments: argparse.Namespace) -> int:
    """Write the word, or list the breakers."""
    if arguments.scope and not arguments.reason:
        print("gpumend close-breaker: say why (--reason)", file=sys.stderr)
        return exits.USAGE
    return servers.run("close-breaker", lambda: _run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    async with servers.kubernetes() as kubernetes:
        if isinstance(kubernetes, Away):
            raise Transient(str(kubernetes))
        manifest = await record(kubernetes)
        circuits = circuits_of(manifest)
        if not arguments.scope:
            return _show(circuits, as_json=arguments.json)
        keys = [key for key, each in circuits.items() if arguments.scope in (key, each.scope)]
        if not keys:
            known = ", ".join(sorted({each.scope for each in circuits.values()})) or "none"
            words = f"no breaker of {arguments.scope} is open; open are: {known}"
            raise NotFound(0, "none", words)
        said = json.dumps({"actor": arguments.actor, "reason": arguments.reason})
        body = {
            "metadata": {"resourceVersion": manifest["metadata"]["resourceVersion"]},
            "data": {close_key(key): said for key in keys},
        }
        await kubernetes.patch(PATH, body, PatchType.MERGE)
    answer = {"closing": keys}
    told = f"{', '.join(keys)}: the watcher closes it within seconds, and lets nodes go at a pace"
    print(json.dumps(answer) if arguments.json else told)
    return exits.OK


async def record(kubernetes: Kubernetes) -> Json:
    """The ConfigMap, or an empty one where no breaker has ever opened."""
    try:
        return await kubernetes.get(PATH)
    except NotFound:
        return {"metadata": {}, "data": {}}


def circuits_of(manifest: Json) -> Mapping[str, Circuit]:
    """Circuits that are not closed, by key. What cannot be read is open, as the watcher has it."""
    found: dict[str, Circuit] = {}
    for key, text in (manifest.get("data") or {}).items():
        if key.startswith(CLOSE):
            continue
        try:
            circuit = parse_circuit(text)
        except ValueError as problem:
            never = datetime.fromtimestamp(0, UTC)
            circuit = Circuit(key, Phase.OPEN, never, never, cause=str(problem))
        if circuit.phase is not Phase.CLOSED:
            found[key] = circuit
    return found


def in_words(circuit: Circuit) -> str:
    """Why it is open, and since when."""
    return f"{circuit.phase} since {clock(circuit.since)} UTC: {circuit.cause or 'no cause known'}"


def _show(circuits: Mapping[str, Circuit], *, as_json: bool) -> int:
    if as_json:
        answer: Any = to_jsonable_python(circuits)
        print(json.dumps(answer))
    elif not circuits:
        print("no breaker is open")
    else:
        now = datetime.now(UTC)
        rows = [
            (each.scope, each.phase, f"{length(now - each.since)} ago", each.cause)
            for each in circuits.values()
        ]
        print(table(("SCOPE", "PHASE", "SINCE", "CAUSE"), rows))
    return exits.FOUND if circuits else exits.OK
