"""Scopes: the groups of nodes that a budget or the breaker counts in, and how a node's labels say
to which it belongs.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from policies.terms import Terms, hyphened, no_such, refusal, shown

CLUSTER = "cluster"
JOB = "job"
NAMED = (CLUSTER, "pool", "rack", "nvlink-domain", JOB)
"""The scopes with a name of their own; any other is `label:<key of a node label>`."""

LABEL_PREFIX = "label:"
_DNS = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*"
_LABEL_KEY = rf"({_DNS}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?"
_LABEL_FORM = re.compile(_LABEL_KEY, re.ASCII)


def check_scope(text: str) -> str:
    """Accept a named scope or `label:<key>`."""
    if text in NAMED:
        return text
    if text.startswith(LABEL_PREFIX):
        check_label_key(text.removeprefix(LABEL_PREFIX))
        return text
    raise no_such("a scope", text, (*NAMED, "label:<key of a node label>"))


def check_label_key(text: str) -> str:
    """Accept what Kubernetes accepts as the key of a label."""
    if not _LABEL_FORM.fullmatch(text) or len(text) > 317:
        raise refusal(f"{shown(text)} is not the key of a label", "write it like example.org/rack")
    return text


Scope = Annotated[
    str,
    AfterValidator(check_scope),
    WithJsonSchema(
        {
            "type": "string",
            "format": "gpumend-scope",
            "pattern": f"^({'|'.join(NAMED)}|label:{_LABEL_KEY})$",
        }
    ),
]
LabelKey = Annotated[
    str,
    AfterValidator(check_label_key),
    WithJsonSchema({"type": "string", "format": "gpumend-label", "pattern": f"^{_LABEL_KEY}$"}),
]
LabelKeys = Annotated[tuple[LabelKey, ...], Field(max_length=16)]


class ScopeLabels(Terms):
    """Which labels say where a node stands and what a pod belongs to. The first that is there
    counts; a node with none of them is in no such scope, and budgets of that scope leave it alone.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=hyphened)

    pool: LabelKeys = Field(
        default=(
            "gpumend.io/pool",
            "karpenter.sh/nodepool",
            "eks.amazonaws.com/nodegroup",
            "cloud.google.com/gke-nodepool",
            "kubernetes.azure.com/agentpool",
        ),
        description="Labels of a node that name its pool: ours first, then those that provisioners"
        " and managed clusters put on.",
    )
    rack: LabelKeys = Field(
        default=("topology.kubernetes.io/rack",),
        description="Labels of a node that name its rack: what shares power and cooling.",
    )
    nvlink_domain: LabelKeys = Field(
        default=("nvidia.com/gpu.clique", "network.topology.nvidia.com/accelerator"),
        description="Labels of a node that name its NVLink domain: what shares one NVLink fabric.",
    )
    job: LabelKeys = Field(
        default=(
            "gpumend.io/job",
            "jobset.sigs.k8s.io/jobset-name",
            "leaderworkerset.sigs.k8s.io/name",
            "trainer.kubeflow.org/trainjob-name",
            "training.kubeflow.org/job-name",
            "ray.io/cluster",
            "batch.kubernetes.io/job-name",
        ),
        description="Labels of a pod that name its job, after the pod's scheduling group: what a"
        " lost node stops as a whole.",
    )


def keys_of(
    labels: Mapping[str, str], known: ScopeLabels, more: Iterable[str] = ()
) -> dict[str, str]:
    """The node's key in each scope that its labels name; `more` are scopes like `label:<key>`.

    A scope without a label is left out: unknown is not a scope of its own. `job` is never here,
    since it is the pods that name it.
    """
    candidates = {"pool": known.pool, "rack": known.rack, "nvlink-domain": known.nvlink_domain}
    candidates |= {each: (each.removeprefix(LABEL_PREFIX),) for each in more}
    found = {
        scope: next((labels[each] for each in keys if labels.get(each)), "")
        for scope, keys in candidates.items()
    }
    return {scope: key for scope, key in found.items() if key}
