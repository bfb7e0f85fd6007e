"""Names that other programs see (keys on nodes, ids, queues). Renaming one is a migration."""

DOMAIN = "gpumend.io"
HOLD_TAINT = f"{DOMAIN}/hold"
HOLD_EFFECT = "NoSchedule"
UNPROVEN_TAINT = f"{DOMAIN}/unproven"
MARK_ANNOTATION = f"{DOMAIN}/incident"
PAUSE_ANNOTATION = f"{DOMAIN}/pause"
PROOF_ANNOTATION = f"{DOMAIN}/proof"
OPEN_ANNOTATION = f"{DOMAIN}/open"
COOL_DOWN_ANNOTATION = f"{DOMAIN}/cool-down"
AGENT_VERSION_ANNOTATION = f"{DOMAIN}/agent-version"
"""On an agent's Lease: which gpumend it is."""
MANAGED_LABEL = f"{DOMAIN}/managed"
OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"

NAMESPACE = "gpumend"
TASK_QUEUE = "gpumend"
BUDGET_SUFFIX = "-budget"
TELL_SUFFIX = "-tell"
TELL_TASK_QUEUE = f"{TASK_QUEUE}{TELL_SUFFIX}"
BUDGET_TASK_QUEUE = f"{TASK_QUEUE}{BUDGET_SUFFIX}"
INCIDENT_WORKFLOW = "node-remediation"
BUDGET_WORKFLOW = "disruption-budget"
PROVE_WORKFLOW = "prove-node"
SWEEP_WORKFLOW = "sweep"
PAIRS_WORKFLOW = "try-in-pairs"
KEEP_WORKFLOW = "keep-for-pairs"

PROVE_PREFIX = "prove/"
"""Begins the ids of proofs, among those that hold leases."""

SIGNAL_REPORT = "report"
SIGNAL_NODE_GONE = "node-gone"
SIGNAL_HOLD_REMOVED = "hold-removed"
SIGNAL_GRANT = "grant"
SIGNAL_APPROVE = "approve"
SIGNAL_DENY = "deny"
SIGNAL_CENSUS = "census"
SIGNAL_READY = "ready"
SIGNAL_WORD = "word"
QUERY_PLAN = "plan"
UPDATE_EXCHANGE = "exchange"
UPDATE_FREEZE = "freeze"
UPDATE_THAW = "thaw"
QUERY_LEDGER = "ledger"


def incident_workflow_id(cluster: str, node: str, machine: str) -> str:
    """The id under which at most one incident of a machine is open."""
    return f"node/{cluster}/{node}/{machine}"


def dry_workflow_id(cluster: str, node: str, machine: str) -> str:
    """The same for an incident in dry run, which never meets a real one."""
    return f"dry/{cluster}/{node}/{machine}"


def prove_workflow_id(cluster: str, node: str, machine: str) -> str:
    """The id under which at most one proof of a machine runs."""
    return f"{PROVE_PREFIX}{cluster}/{node}/{machine}"


def sweep_id(cluster: str) -> str:
    """The id of the schedule of a cluster's sweeps; the id of each run begins with it."""
    return f"sweep/{cluster}"


def pairs_id(cluster: str) -> str:
    """The id of the schedule of a cluster's trials in pairs; each run's id begins with it."""
    return f"pairs/{cluster}"


def budget_workflow_id(cluster: str) -> str:
    """The id of the one disruption budget of a cluster."""
    return f"budget/{cluster}"


def agent_lease(node: str) -> str:
    """The name of the Lease by which a node's agent says that it lives."""
    return f"agent-{node}"


LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
"""Where our Leases are: one an agent, one for the leader."""


def node_path(name: str) -> str:
    """Where a Node is."""
    return f"/api/v1/nodes/{name}"
