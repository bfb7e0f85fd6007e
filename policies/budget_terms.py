"""The part of the policy that protects the fleet as a whole: budgets and the breaker.

A budget is a pace (how many may be disrupted at once), the breaker a doubt (so much is sick at
once that the sensor is the suspect). They are kept apart on purpose.
"""

from typing import Annotated

from pydantic import Field, StrictInt

from policies.amounts import MOST, AmountField, Pace, PaceField, Percent, PercentField
from policies.durations import parse_duration
from policies.scopes import Scope
from policies.terms import Terms


class Budget(Terms):
    """How many nodes of a scope may be disrupted at once. Every budget must agree to a lease."""

    scope: Scope = Field(
        description="What is counted in: cluster, pool, rack, nvlink-domain, job, or label:<key>.",
        examples=["rack"],
    )
    max: AmountField = Field(
        description="Nodes, as a count or as a share of the scope. A share rounds down, with a"
        " minimum of one. 0 allows no repair in the scope at all.",
        examples=["5%", 1],
    )


class Breaker(Terms):
    """When too much is sick at once: no new holds and no new leases in that scope."""

    scope: Scope = Field(
        default="pool",
        description="What is judged as one. Default pool: its nodes share image and driver, so one"
        " bad roll-out shows as one pool turning red.",
    )
    open_above: PercentField = Field(
        default=Percent(300),
        description="Share of the scope's nodes with an open incident above which it opens; hand-"
        "offs and probation are not counted. Default 30%: hardware does not fail like that.",
    )
    min_nodes: Annotated[StrictInt, Field(ge=1, le=MOST)] = Field(
        default=5,
        description="Nodes; scopes with fewer are exempt. Default 5: in a pool of four, two sick"
        " nodes are already half, and a share says nothing.",
    )
    reopen: PaceField = Field(
        default=Pace(1, parse_duration("30s")),
        description="How fast held-back incidents are let go once it closes. Default 1 per 30s:"
        " the storm that opened it must not come through at once.",
    )
