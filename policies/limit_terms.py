"""The part of the policy that bounds every wait and every retry of the ladder.

A limit that is reached is a hand-off that names the limit and its value.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StrictInt

from policies.durations import Duration, parse_duration
from policies.terms import Terms

TOLD_EVERY = timedelta(minutes=1)
"""The watcher tells an incident of its node at most this often, unless it got worse."""

Tries = Annotated[StrictInt, Field(ge=1, le=20)]


class Limits(Terms):
    """How long and how often at most, for all faults."""

    lease_wait: Duration = Field(
        default=parse_duration("24h"),
        description="Wait for a lease of the disruption budget. Default 24h: a budget that says no"
        " for a whole day needs a person.",
    )
    end_job: Duration = Field(
        default=parse_duration("15m"), description="Time for a job's pods to leave. Default 15m."
    )
    reset_gpu: Duration = Field(
        default=parse_duration("10m"),
        description="Time for a GPU reset. Default 10m: it takes seconds, unless a process does"
        " not let go.",
    )
    reboot: Duration = Field(
        default=parse_duration("30m"),
        description="Time for a reboot, until the node is Ready under a new boot id. Default 30m:"
        " large machines train their memory for a quarter of an hour.",
    )
    launch: Duration = Field(
        default=parse_duration("1h"),
        description="Time for a successor to be Ready, where the provider can bring one before the"
        " old machine goes. Default 1h: capacity may be short.",
    )
    replace: Duration = Field(
        default=parse_duration("2h"),
        description="Time until the old machine is gone. Default 2h: capacity may be short.",
    )
    verify: Duration = Field(
        default=parse_duration("15m"),
        description="Time for one verify, after its settling. Default 15m.",
    )
    verify_tries: Tries = Field(
        default=3,
        description="Times a verify that could not tell is run. Default 3. Could not tell is never"
        " a pass.",
    )
    step_tries: Tries = Field(
        default=5,
        description="Times a step that failed for the moment (API busy, node not reachable) is"
        " tried again. Default 5.",
    )
    step_pause: Duration = Field(
        default=parse_duration("30s"), description="Pause between such tries. Default 30s."
    )
    recurrences: Tries = Field(
        default=3,
        description="Times a fault may come back in probation before a person gets it. Default 3.",
    )
    unknown_wait: Duration = Field(
        default=parse_duration("30m"),
        description="How long an incident waits for facts when the node's state cannot be told."
        " Default 30m.",
    )
    look_again: Duration = Field(
        default=parse_duration("5m"),
        description="Longest sleep before an incident looks at the world again. Default 5m.",
    )
    answer: Duration = Field(
        default=parse_duration("4h"),
        description="How long the question stays open whether a drain may be forced. Default 4h:"
        " within one shift. No answer is a no.",
    )
    idle_look: Duration = Field(
        default=parse_duration("15m"),
        description="How often at most it is looked whether jobs still use the GPUs of a node whose"
        " repair may begin sooner if they do not; rarer the longer it lasts. Default 15m: one list"
        " of Pods, and the repair is in no hurry.",
    )
    pause: Duration = Field(
        default=parse_duration("7d"),
        description="How long a pause by a person may last. Default 7d: forgotten pauses cost"
        " nodes.",
    )
    cool_down: Duration = Field(
        default=parse_duration("1h"),
        description="After a person took hold and mark away: how long the node is left alone."
        " Default 1h.",
    )
