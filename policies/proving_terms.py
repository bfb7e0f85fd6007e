"""The part of the policy about proof: what a new or idle node must pass, and how often it is asked.

Which node is due is `policies/proving.py`; what a run of it takes along is `policies/prove_terms`.
"""

from typing import Annotated, Any

from pydantic import Field, StrictInt, model_validator

from fleet.check import Check
from policies.durations import Duration, parse_duration
from policies.limit_terms import Tries
from policies.pairs_terms import Pairs
from policies.terms import Terms

NONE = "none"
"""How people write that idle nodes are left alone."""


class Sweep(Terms):
    """How idle nodes are looked for and proven again, within every budget."""

    every: Duration = Field(
        default=parse_duration("7d"),
        description="How old an idle node's last proof may become. Default 7d: memory and links"
        " fade in weeks, and each look takes the node away for minutes.",
    )
    look: Duration = Field(
        default=parse_duration("1h"),
        description="How often idle nodes are looked for; also how long one sweep goes on. Default"
        " 1h: nodes fall idle between jobs, for hours rather than minutes.",
    )
    at_once: Annotated[StrictInt, Field(ge=1, le=100)] = Field(
        default=1,
        description="Nodes taken at once, besides what every budget allows. Default 1: nobody is"
        " in a hurry, and whoever starts a job now misses one node.",
    )


def _none_is_written(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"const": NONE})


class Proving(Terms):
    """How a node with the taint gpumend.io/unproven is proven, and idle nodes are swept."""

    checks: Annotated[tuple[Check, ...], Field(min_length=1, max_length=20)] = Field(
        default=(
            Check.KERNEL_LOG,
            Check.PRESENCE,
            Check.PCI,
            Check.RECOVERY_ACTION,
            Check.MEMORY,
            Check.ADAPTERS,
            Check.DRIVER,
            Check.HOST,
        ),
        description="Checks that must all pass on the node; besides, its agent must say that all"
        " is well, which covers the passive ones. Default: each that is quick and speaks on every"
        " node. Active ones (compute, all-reduce) need torch in the image of step Pods;"
        " without it they cannot tell, and the node stays unproven.",
    )
    limit: Duration = Field(
        default=parse_duration("30m"),
        description="Time for one try. Default 30m: an active check loads a node for minutes.",
    )
    tries: Tries = Field(
        default=3,
        description="Tries of a proof that could not tell. Default 3. Then a swept node serves"
        " again; a new one is tried again later, more and more seldom.",
    )
    pause: Duration = Field(
        default=parse_duration("5m"),
        description="Pause between such tries. Default 5m: drivers load and agents start.",
    )
    sweep: Sweep | None = Field(
        default=None,
        description="How idle nodes are swept, or none. Default none: a node in service is left"
        " alone.",
        json_schema_extra=_none_is_written,
    )

    pairs: Pairs | None = Field(
        default=None,
        description="How idle nodes are tried in pairs, or none. Default none: it takes several"
        " nodes at once, and torch in the image of step Pods.",
        json_schema_extra=_none_is_written,
    )

    @model_validator(mode="before")
    @classmethod
    def _none_is_nothing(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {
            key: None if key in _MAY_BE_NONE and each == NONE else each
            for key, each in given.items()
        }


_MAY_BE_NONE = ("sweep", "pairs")
