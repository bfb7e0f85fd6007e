"""The part of the policy about trials in pairs: how idle nodes are paired, how often, and where.

Who is tried with whom is `policies/pairwise.py`, what comes of it `policies/trial.py`.
"""

from typing import Annotated

from pydantic import Field, StrictInt

from fleet.pair import LAST_PORT
from policies.amounts import Percent, PercentField
from policies.durations import Duration, parse_duration
from policies.scopes import Scope
from policies.terms import Terms


class Pairs(Terms):
    """How idle nodes are tried in pairs, to find the one whose way to the others is bad."""

    every: Duration = Field(
        default=parse_duration("7d"),
        description="How old an idle node's last trial may become. Default 7d: cables and switches"
        " fade in weeks, and each trial takes several nodes away for minutes.",
    )
    look: Duration = Field(
        default=parse_duration("6h"),
        description="How often idle nodes are looked for; also how long trials go on then. Default"
        " 6h: a trial takes several idle nodes at once, which there are by night.",
    )
    at_once: Annotated[StrictInt, Field(ge=3, le=32)] = Field(
        default=4,
        description="Nodes in one trial, besides what every budget allows. Default 4: who failed"
        " with two that did well with each other is found in two rounds; three are the least.",
    )
    within: Annotated[tuple[Scope, ...], Field(max_length=8)] = Field(
        default=("pool", "nvlink-domain"),
        description="Scopes that the nodes of a trial share, where their labels name them. Default"
        " pool and nvlink-domain: budgets mostly lend one node of a rack, so a rack alone has no"
        " pairs. Add rack where the network between racks is much slower.",
    )
    port: Annotated[StrictInt, Field(ge=1_024, le=LAST_PORT)] = Field(
        default=27_900,
        description="Port of the hosts' network at which two nodes greet each other; their ranks"
        " meet at the next one. Default 27900: below what Linux gives out by itself. A node is in"
        " one pair at a time. NCCL opens further ports of the kernel's choice between the two.",
    )
    add_up: Duration = Field(
        default=parse_duration("2m"),
        description="Time for a pair to load its libraries and add up, once the two have greeted"
        " each other; what takes longer hangs. Default 2m: a sound pair takes half of it.",
    )
    slow_below: PercentField = Field(
        default=Percent(500),
        description="A pair is slow whose pace is below this share of the fastest pair of its"
        " trial. Default 50%: sound pairs differ by a fifth; one of two adapters gone is half. A"
        " network that gives some pairs less by its build needs less here, or a rack in within.",
    )
