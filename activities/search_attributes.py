"""The search attributes of incidents: typed keys, and the command that registers them.

Few on purpose: SQL visibility has ten Keyword columns a namespace and three of most other types.
"""

from collections.abc import Mapping

from temporalio.common import (
    SearchAttributeIndexedValueType,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)

from fleet.opening import Opening
from fleet.proving import ProveTask

CLUSTER = SearchAttributeKey.for_keyword("Cluster")
NODE = SearchAttributeKey.for_keyword("Node")
MACHINE = SearchAttributeKey.for_keyword("Machine")
POOL = SearchAttributeKey.for_keyword("Pool")
RACK = SearchAttributeKey.for_keyword("Rack")
FAULT = SearchAttributeKey.for_keyword("Fault")
STEP = SearchAttributeKey.for_keyword("Step")
STEPS = SearchAttributeKey.for_keyword_list("Steps")
DUE_AT = SearchAttributeKey.for_datetime("DueAt")

KEYS = (CLUSTER, NODE, MACHINE, POOL, RACK, FAULT, STEP, STEPS, DUE_AT)

TYPES: Mapping[str, SearchAttributeIndexedValueType] = {
    each.name: each.indexed_value_type for each in KEYS
}
"""Name and type as the server knows them."""


def at_start(opening: Opening) -> TypedSearchAttributes:
    """What is known before anything happened; a scope that is unknown is absent."""
    pairs = [
        SearchAttributePair(CLUSTER, opening.node.cluster),
        SearchAttributePair(NODE, opening.node.name),
        SearchAttributePair(MACHINE, opening.node.machine),
        SearchAttributePair(STEP, "hold"),
    ]
    scoped = ((POOL, opening.scopes.get("pool")), (RACK, opening.scopes.get("rack")))
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
