"""`gpumend doctor`: what is reachable, registered, allowed and running, and what mends the rest.

It changes nothing. Reading is thin; what is right and wrong is said by the pure modules beside it.
Exit status: 0 all well, 1 something is wrong, 3 a server could not be reached.
"""

import argparse
import json
import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from activities.adapters.provider import provider_of
from activities.adapters.provider_access import read_access
from activities.adapters.temporal_checks import longest_window
from activities.adapters.temporal_connection import connect
from activities.adapters.temporal_facts import TemporalFacts
from activities.adapters.temporal_facts import read_facts as read_temporal
from console import exits, servers
from console.doctor import of_kubernetes, of_temporal
from console.doctor.item import Item, State, ok
from console.doctor.reading import read_facts as read_kubernetes
from console.servers import Away, once
from console.which import plain
from fleet.errors import Refused
from policies.document import PolicyErrors, default_policy, load
from policies.schema import Policy

LISTS = timedelta(seconds=60)
"""For the lists of a large cluster: ten thousand nodes are 140 MB."""
MARKS = {
    State.OK: "ok   ",
    State.NOTE: "note ",
    State.WRONG: "WRONG",
    State.UNKNOWN: "?    ",
    State.AWAY: "AWAY ",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--policy",
        type=Path,
        default=os.environ.get("GPUMEND_POLICY"),
        help="policy file whose longest attempts window Temporal must remember",
    )
    parser.add_argument("--cluster", type=plain, default=servers.default_cluster())
    parser.add_argument("--json", action="store_true", help="print JSON, only that")


def run(arguments: argparse.Namespace) -> int:
    """Look at everything."""
    return servers.run("doctor", lambda: _run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    items: list[Item] = []
    policy, mistakes = _policy(arguments.policy)
    items += mistakes
    items += await _temporal(arguments.cluster, policy)
    items += await _kubernetes(arguments.cluster)
    items += await _provider()
    if arguments.json:
        print(json.dumps([asdict(each) for each in items]))
    else:
        print("\n".join(as_text(items)))
    return status_of(items)


def status_of(items: Sequence[Item]) -> int:
    """The worst of them. What could not be told changes nothing: it is said."""
    states = {each.state for each in items}
    if State.AWAY in states:
        return exits.UNREACHABLE
    return exits.FOUND if State.WRONG in states else exits.OK


def as_text(items: Sequence[Item]) -> Iterator[str]:
    """For people."""
    wide = max((len(each.subject) for each in items), default=0)
    for each in items:
        yield f"{MARKS[each.state]}  {each.subject.ljust(wide)}  {each.says}"
        if each.mend:
            yield f"       {'':{wide}}  -> {each.mend}"


def _policy(file: Path | None) -> tuple[Policy, list[Item]]:
    if file is None:
        return default_policy(), []
    try:
        return load(file.read_text(), str(file)), []
    except (OSError, PolicyErrors) as problem:
        item = Item("policy", State.WRONG, str(problem), f"gpumend policy check {file}")
        return default_policy(), [item]


async def _temporal(cluster: str, policy: Policy) -> list[Item]:
    async def facts() -> TemporalFacts:
        return await read_temporal(await connect(), cluster)

    found = await once("Temporal", facts)
    if isinstance(found, Away):
        remedy = "set TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and what else the Temporal CLI reads"
        return [Item("temporal", State.AWAY, found.why, remedy)]
    return [*of_temporal.judge(found, longest_window(policy), cluster, _proofs(policy))]


def _proofs(policy: Policy) -> Set[str]:
    if policy.dry_run:
        return frozenset()
    wanted = {of_temporal.SWEEPS: policy.proving.sweep, of_temporal.PAIRS: policy.proving.pairs}
    return {each for each, terms in wanted.items() if terms is not None}


async def _kubernetes(cluster: str) -> list[Item]:
    async with servers.kubernetes() as kubernetes:
        if isinstance(kubernetes, Away):
            return [_away(kubernetes)]
        found = await once("Kubernetes", lambda: read_kubernetes(kubernetes, cluster), LISTS)
    if isinstance(found, Away):
        return [_away(found)]
    return [*of_kubernetes.judge(found, datetime.now(UTC))]


def _away(away: Away) -> Item:
    return Item("kubernetes", State.AWAY, away.why, "kubectl version  # with this KUBECONFIG")


async def _provider() -> list[Item]:
    """The webhook, where this environment names one as the worker's does."""
    mend = "set GPUMEND_PROVIDER_URL and what goes with it, as docs/provider-openapi.yaml says"
    try:
        if read_access(os.environ) is None:
            return []
        async with provider_of(os.environ) as provider:
            found = await once("the provider", provider.abilities)
    except (ValueError, OSError) as problem:
        return [Item("provider", State.WRONG, str(problem), mend)]
    except Refused as problem:
        return [Item("provider", State.WRONG, problem.message, mend)]
    if isinstance(found, Away):
        return [Item("provider", State.AWAY, found.why, mend)]
    return [ok("provider", f"can {', '.join(sorted(found)) or 'do nothing'}")]
