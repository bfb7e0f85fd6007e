"""Karpenter's NodeClaims on a test server: the kind, and a claim for a node."""

from tests.contract.client import MERGE, eventually

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
DEFINITION = {
    "metadata": {"name": "nodeclaims.karpenter.sh"},
    "spec": {
        "group": "karpenter.sh",
        "names": {
            "plural": "nodeclaims",
            "singular": "nodeclaim",
            "kind": "NodeClaim",
            "listKind": "NodeClaimList",
        },
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


async def define_node_claims(cluster):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = await cluster.raw.post(path, DEFINITION)
    assert answer.status_code in (201, 409), answer.text
    await eventually(lambda: cluster.raw.get(CLAIMS), 200)


async def add_claim(cluster, node="n1", name="claim-1", finalizer="karpenter.sh/termination"):
    """The claim of a node that carries its finalizer, as Karpenter's do."""
    body = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "finalizers": [finalizer] if finalizer else []},
        "spec": {},
    }
    claim = await cluster.raw.created(CLAIMS, body)
    status = {"status": {"nodeName": node, "providerID": "cloud:///i-1"}}
    answer = await cluster.raw.patch(f"{CLAIMS}/{name}/status", status, MERGE)
    assert answer.is_success, answer.text
    label = {"metadata": {"labels": {"karpenter.sh/nodepool": "gpu"}}}
    answer = await cluster.raw.patch(f"/api/v1/nodes/{node}", label, MERGE)
    assert answer.is_success, answer.text
    return claim


async def terminate(cluster, name="claim-1", node="n1"):
    """What Karpenter does once a claim is deleted: the machine goes, then Node and claim."""
    await cluster.raw.delete(f"/api/v1/nodes/{node}")
    patch = {"metadata": {"finalizers": None}}
    answer = await cluster.raw.patch(f"{CLAIMS}/{name}", patch, MERGE)
    assert answer.is_success, answer.text
