"""Makes `schema.json` from the OpenAPI v3 documents of Kubernetes.

`python -m simulator.apiserver.generate_schema FOLDER`, the folder being `api/openapi-spec/v3` of
the module k8s.io/kubernetes. Run by hand when the version of Kubernetes changes.
"""

import json
import sys
from pathlib import Path
from typing import Any

DOCUMENTS = (
    "api__v1",
    "apis__coordination.k8s.io__v1",
    "apis__policy__v1",
    "apis__apps__v1",
    "apis__batch__v1",
    "apis__storage.k8s.io__v1",
    "apis__rbac.authorization.k8s.io__v1",
    "apis__admissionregistration.k8s.io__v1",
)
ROOTS = (
    "Node",
    "Namespace",
    "Pod",
    "ConfigMap",
    "Secret",
    "Event",
    "ServiceAccount",
    "Lease",
    "PodDisruptionBudget",
    "DaemonSet",
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "Job",
    "VolumeAttachment",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
PREFIX = "#/components/schemas/"
SCALARS = {
    "Quantity": "quantity",
    "IntOrString": "intstr",
    "Time": "time",
    "MicroTime": "microtime",
}


def generate(folder: Path) -> dict[str, dict[str, str]]:
    """Words by field by type, for all types that the served kinds reach."""
    schemas: dict[str, Any] = {}
    for document in DOCUMENTS:
        content = json.loads((folder / f"{document}_openapi.json").read_text())
        schemas |= content["components"]["schemas"]
    by_name = {name.rsplit(".", 1)[1]: schema for name, schema in schemas.items()}
    types: dict[str, dict[str, str]] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in types:
            types[name] = _fields(by_name, by_name[name])
            waiting += [
                word.strip("!").rpartition("@")[2] for word in types[name].values() if "@" in word
            ]
    return dict(sorted(types.items()))


def _fields(by_name: dict[str, Any], schema: dict[str, Any]) -> dict[str, str]:
    required = schema.get("required", ())
    return {
        name: _word(by_name, field) + ("!" if name in required else "")
        for name, field in schema["properties"].items()
    }


def _word(by_name: dict[str, Any], schema: dict[str, Any]) -> str:
    references = [schema] if "$ref" in schema else schema.get("allOf", [])
    for reference in references:
        name = reference["$ref"].removeprefix(PREFIX).rsplit(".", 1)[1]
        if name in SCALARS:
            return SCALARS[name]
        return f"@{name}" if "properties" in by_name[name] else "any"
    match schema.get("type"):
        case "array":
            return _list_head(schema) + _word(by_name, schema["items"])
        case "object":
            inner = schema.get("additionalProperties")
            return "{}" + _word(by_name, inner) if isinstance(inner, dict) else "any"
        case str(scalar):
            return scalar
    return "any"


def _list_head(schema: dict[str, Any]) -> str:
    if "merge" not in schema.get("x-kubernetes-patch-strategy", "").split(","):
        return "[]"
    return f"[={schema.get('x-kubernetes-patch-merge-key', '')}]"


if __name__ == "__main__":
    text = json.dumps(generate(Path(sys.argv[1])), indent=0)
    Path(__file__).with_name("schema.json").write_text(text + "\n")
