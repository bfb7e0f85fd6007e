"""The part of the policy about people: which steps wait for a yes, and for how long."""

from enum import StrEnum

from pydantic import Field

from policies.durations import Duration, parse_duration
from policies.fault_terms import Repair
from policies.terms import Terms


class OnExpiry(StrEnum):
    """What an unanswered question means. There is no `approve`: silence is not consent."""

    DENY = "deny"


class Approval(Terms):
    """A step that needs a person's yes."""

    step: Repair = Field(description="The step that waits.", examples=["replace"])
    expires: Duration = Field(
        default=parse_duration("4h"),
        description="How long the question stays open. Default 4h: within one shift.",
    )
    on_expiry: OnExpiry = Field(
        default=OnExpiry.DENY,
        description="What no answer means. Only deny, which ends in a hand-off.",
    )
