"""Which incident a node's name means: by the Node's machine where it can be read, and by the list.

The machine is part of an incident's id, so that an order never reaches another machine that once
had, or now has, the name.
"""

import difflib
import re
from collections.abc import Sequence

from activities.adapters.temporal_reading import Run, TemporalReading
from activities.waiting import list_all
from console.servers import Away, once
from fleet.errors import NotFound, Refused
from fleet.names import INCIDENT_WORKFLOW, incident_workflow_id, node_path
from fleet.node import NodeState, read_node
from fleet.ports import Json, Kubernetes

MOST_RUNS = 20
"""Runs of one node that are looked at, the newest first."""
NEAR = 3
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def node_name(text: str) -> str:
    """A name that a Node can have; ValueError for any other, as argparse wants it."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a node")
    return text


def plain(text: str) -> str:
    """A value that may stand between quotes in a list filter."""
    if re.search(r"['\"\\\x00-\x1f]", text):
        raise ValueError(f"{text!r} has quotes or control characters")
    return text


async def manifest_of(kubernetes: Kubernetes | Away, node: str) -> Json | Away | None:
    """The Node as the API server has it; None where there is none."""
    if isinstance(kubernetes, Away):
        return kubernetes
    try:
        return await once("Kubernetes", lambda: kubernetes.get(node_path(node)))
    except NotFound:
        return None
    except Refused as problem:
        return Away("Kubernetes", problem.message)


async def runs_of(
    reading: TemporalReading, cluster: str, node: str, machine: str | None
) -> tuple[Run, ...]:
    """Incidents of a node, the open ones first, then the newest.

    The list lags; the run of the machine that has the name now is asked for by id.
    """
    query = f"WorkflowType = '{INCIDENT_WORKFLOW}' AND Cluster = '{cluster}' AND Node = '{node}'"
    listed = await reading.runs(query, MOST_RUNS)
    found = {each.run_id: each for each in listed if each.status != "continued-as-new"}
    if machine:
        try:
            now = await reading.latest(incident_workflow_id(cluster, node, machine))
            found[now.run_id] = now
        except NotFound:
            pass
    return tuple(sorted(found.values(), key=_newest, reverse=True))


def _newest(run: Run) -> tuple[bool, float]:
    return run.open, run.started.timestamp()


async def the_open_run(
    reading: TemporalReading, kubernetes: Kubernetes | Away, cluster: str, node: str
) -> Run:
    """The one open incident of a node; `NotFound` or `Refused` say why there is not exactly one."""
    manifest = await manifest_of(kubernetes, node)
    known = isinstance(manifest, dict)
    state = read_node(manifest, cluster) if isinstance(manifest, dict) else None
    machine = state.identity.machine if state else None
    runs = [each for each in await runs_of(reading, cluster, node, machine) if each.open]
    if known and len(runs) > 1:
        runs = [each for each in runs if each.workflow_id.endswith(f"/{machine}")] or runs
    if len(runs) == 1:
        return runs[0]
    if runs:
        ids = ", ".join(each.workflow_id for each in runs)
        raise Refused(0, "many", f"{node} has several open incidents, one a machine: {ids}")
    raise NotFound(0, "none", await nothing_open(kubernetes, manifest, cluster, node))


async def nothing_open(
    kubernetes: Kubernetes | Away, manifest: Json | Away | None, cluster: str, node: str
) -> str:
    """Why nothing is found under a name, as far as it can be told."""
    if isinstance(manifest, dict):
        mark = read_node(manifest, cluster).mark
        if mark:
            return f"{node} is held (mark {mark.id}, {mark.state}), and Temporal has no run yet"
        return f"{node} has no open incident in cluster {cluster}"
    if manifest is None and not isinstance(kubernetes, Away):
        near = await near_names(kubernetes, node)
        hint = f"; near it: {', '.join(near)}" if near else ""
        return f"there is no node {node}, and no open incident of it in cluster {cluster}{hint}"
    return f"Temporal has no open incident of {node} in cluster {cluster}"


async def near_names(kubernetes: Kubernetes, node: str) -> Sequence[str]:
    """Names of nodes that look like this one."""
    listing = await once("Kubernetes", lambda: list_all(kubernetes, "/api/v1/nodes", {}))
    if isinstance(listing, Away):
        return ()
    names = [str(each["metadata"]["name"]) for each in listing.objects]
    return difflib.get_close_matches(node, names, NEAR)


def state_of(manifest: Json | Away | None, cluster: str) -> NodeState | None:
    """The Node as we see it, where there is one."""
    return read_node(manifest, cluster) if isinstance(manifest, dict) else None
