"""The search attributes of incidents: typed keys, and the command that registers them.

Few on purpose: SQL visibility has ten Keyword columns a namespace and three of most other types.
"""

from collections.abc import Mapping
from typing import Any

from temporalio.common import (
    SearchAttributeIndexedValueType,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)

from fleet.opening import Opening
from fleet.proving import ProveTask
from fleet.step import Step

CLUSTER = SearchAttributeKey.for_keyword("Cluster")
NODE = SearchAttributeKey.for_keyword("Node")
MACHINE = SearchAttributeKey.for_keyword("Machine")
POOL = SearchAttributeKey.for_keyword("Pool")
RACK = SearchAttributeKey.for_keyword("Rack")
FAULT = SearchAttributeKey.for_keyword("Fault")
STEP = SearchAttributeKey.for_keyword("Step")
STEPS = SearchAttributeKey.for_keyword_list("Steps")
DUE_AT = SearchAttributeKey.for_datetime("DueAt")

DRY_RUN = "dry-run"
"""Among the steps of an incident that only rehearses, so that a list tells it from a real one."""

KEYS = (CLUSTER, NODE, MACHINE, POOL, RACK, FAULT, STEP, STEPS, DUE_AT)

TYPES: Mapping[str, SearchAttributeIndexedValueType] = {
    each.name: each.indexed_value_type for each in KEYS
}
"""Name and type as the server knows them."""


def at_start(opening: Opening, fault: str = "") -> TypedSearchAttributes:
    """What is known before anything happened, since at the start it costs nothing.

    A scope that is unknown is absent; `fault` is the first of the report.
    """
    pairs: list[SearchAttributePair[Any]] = [
        SearchAttributePair(CLUSTER, opening.node.cluster),
        SearchAttributePair(NODE, opening.node.name),
        SearchAttributePair(MACHINE, opening.node.machine),
        SearchAttributePair(STEP, Step.HOLD.value),
    ]
    if opening.dry:
        pairs.append(SearchAttributePair(STEPS, [DRY_RUN]))
    pool, rack = opening.scopes.get("pool"), opening.scopes.get("rack")
    scoped = ((POOL, pool), (RACK, rack), (FAULT, fault))
    pairs += [SearchAttributePair(key, value) for key, value in scoped if value]
    return TypedSearchAttributes(pairs)


def proof_attributes(task: ProveTask) -> TypedSearchAttributes:
    """Of a proof: its node, as that of an incident is found."""
    node = task.node
    named = ((CLUSTER, node.cluster), (NODE, node.name), (MACHINE, node.machine))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in named])


def register_command(missing: Mapping[str, SearchAttributeIndexedValueType]) -> str:
    """The command that registers what is missing."""
    words = {
        SearchAttributeIndexedValueType.KEYWORD: "Keyword",
        SearchAttributeIndexedValueType.KEYWORD_LIST: "KeywordList",
        SearchAttributeIndexedValueType.DATETIME: "Datetime",
    }
    pairs = (f"--name {name} --type {words[kind]}" for name, kind in missing.items())
    return f"temporal operator search-attribute create {' '.join(pairs)}"
