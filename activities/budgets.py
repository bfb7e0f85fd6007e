"""The PodDisruptionBudgets that stand in the way of a Pod, named and counted for people. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from fleet.node import Manifest


def budgets_of(pod_labels: Mapping[str, str], budgets: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """The budgets of the Pod's namespace that select it; in policy/v1 `{}` selects every Pod."""
    return tuple(
        each
        for each in budgets
        if (selector := (each.get("spec") or {}).get("selector")) is not None
        and selects(selector, pod_labels)
    )


def describe(budget: Manifest) -> str:
    """One budget: how many it needs, how many there are, and what that means."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    notes = [f"{name} needs {needs} healthy and has {has}"]
    if needs and not has:
        notes.append("no replica is healthy")
    if needs and needs == status.get("expectedPods"):
        notes.append("it never allows a disruption, so ask its owner")
    return ", ".join(notes)


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector picks these labels."""
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_fits(each, labels) for each in selector.get("matchExpressions") or ())


def _fits(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
