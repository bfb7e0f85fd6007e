"""`gpumend open NODE`: a person has found what no check sees; hold the node and begin an incident.

It writes the person's finding on the Node; the watcher makes an incident of it, with the hold, as
of any other finding. So it works while Temporal is away.
Exit status: 0 written, 1 the node is in no state for it, 2 bad usage, 3 the API server is away.
"""

import argparse
import json

from console import exits, servers
from console.order import add_who_and_why
from console.servers import Away
from console.which import manifest_of, near_names, node_name
from fleet.errors import NotFound, Refused, Transient
from fleet.fault import FaultName
from fleet.names import MANAGED_LABEL, OPEN_ANNOTATION, node_path
from fleet.node import NodeState, read_node
from fleet.open_request import OpenRequest, format_open_request
from fleet.ports import Json, Kubernetes, PatchType


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    faults = [each.value for each in FaultName]
    parser.add_argument("node", type=node_name, metavar="NODE")
    parser.add_argument(
        "--fault", required=True, choices=faults, metavar="FAULT", help=f"one of {' '.join(faults)}"
    )
    add_who_and_why(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, only that")


def run(arguments: argparse.Namespace) -> int:
    """Write it."""
    return servers.run("open", lambda: _run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    async with servers.kubernetes() as kubernetes:
        manifest = await manifest_of(kubernetes, arguments.node)
        if isinstance(manifest, Away) or isinstance(kubernetes, Away):
            raise Transient(str(manifest))
        if manifest is None:
            near = await near_names(kubernetes, arguments.node)
            hint = f"; near it: {', '.join(near)}" if near else ""
            raise NotFound(0, "none", f"there is no node {arguments.node}{hint}")
        why_not = refusal(read_node(manifest, ""))
        if why_not:
            raise Refused(0, "not-now", why_not)
        await _write(kubernetes, manifest, arguments)
    said = f"{arguments.node}: asked for; see gpumend show {arguments.node}"
    print(
        json.dumps({"node": arguments.node, "fault": arguments.fault}) if arguments.json else said
    )
    return exits.OK


def refusal(node: NodeState) -> str | None:
    """Why a person's finding makes no incident of this node now, and what to do instead."""
    name = node.identity.name
    if node.mark:
        return f"{name} has incident {node.mark.id} already: see gpumend show {name}"
    if not node.managed:
        return f"{name} is opted out by label {MANAGED_LABEL}=false: take the label off first"
    asked = node.open_request
    if asked:
        said = f"{asked.fault} by {asked.actor}: {asked.reason}"
        return f"it is asked for already ({said}): does a watcher run?"
    return None


async def _write(kubernetes: Kubernetes, manifest: Json, arguments: argparse.Namespace) -> None:
    """Guarded: what was judged is what is written on."""
    metadata = manifest["metadata"]
    request = OpenRequest(FaultName(arguments.fault), arguments.reason, arguments.actor)
    body = {
        "metadata": {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {OPEN_ANNOTATION: format_open_request(request)},
        }
    }
    await kubernetes.patch(node_path(arguments.node), body, PatchType.MERGE)
