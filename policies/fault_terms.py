"""The part of the policy about one fault: whether it is held, how long jobs may stay, which steps
repair it in which order, and what proves the repair.

It says what, never how. What follows what is `policies/ladder.py`.
"""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import (
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictInt,
    WithJsonSchema,
    model_validator,
)

from fleet.check import Check
from fleet.step import REPAIRS, Step
from policies.durations import Duration, parse_duration
from policies.terms import Terms, hyphened, no_such


def parse_repair(step: object) -> Step:
    """Read a step that a policy may list: one that repairs something."""
    if step in REPAIRS:
        return Step(str(step))
    raise no_such("a step that a policy may list", step, REPAIRS)


Repair = Annotated[
    Step,
    PlainValidator(parse_repair),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "enum": [each.value for each in REPAIRS]}),
]
NO_DRAIN = "none"
"""How people write that there is no drain."""
Tries = Annotated[StrictInt, Field(ge=1, le=20)]


class AfterDeadline(StrEnum):
    """What happens when a drain's deadline is over and pods are still there."""

    ASK = "ask"
    HAND_OFF = "hand-off"
    FORCE = "force"


class Drain(Terms):
    """How the node is emptied before its first step, by eviction, disruption budgets respected."""

    deadline: Duration = Field(
        default=parse_duration("30m"),
        description="How long pods may take to leave, counted from the lease, or from the launch of"
        " a successor. Default 30m: longer than the checkpoint interval of most training jobs.",
    )
    after_deadline: AfterDeadline = Field(
        default=AfterDeadline.ASK,
        description="ask a person, hand-off to one, or force: delete what is left with its own"
        " grace. Default ask: only people know what a job is worth.",
    )
    delete_emptydir: StrictBool = Field(
        default=False,
        description="Whether pods with an emptyDir on disk are evicted, and lose it, without a"
        " person's word. Default no: nobody else knows what is in it.",
    )
    ask_first: StrictBool = Field(
        default=False,
        description="Whether end-job asks a job's pods by EvictionRequest, where the API server"
        " serves it, before the Eviction API. Default no: the API is alpha.",
    )


class Verify(Terms):
    """What proves that the repair helped."""

    checks: Annotated[tuple[Check, ...], Field(max_length=20)] = Field(
        default=(
            Check.KERNEL_LOG,
            Check.PRESENCE,
            Check.PCI,
            Check.RECOVERY_ACTION,
            Check.MEMORY,
        ),
        description="Checks that must all pass on the node. Default: each that is quick; a node is"
        " given back on evidence, and evidence is cheap beside a spoilt job. compute and all-reduce"
        " use idle GPUs, need an image with torch, and are asked once something was repaired, or"
        " where the fault (wrong-results, slow) shows in no other way.",
    )
    settle: Duration = Field(
        default=parse_duration("2m"),
        description="How long the node must have been quiet before it counts. Default 2m: links"
        " flap for a while after a boot or a reset.",
    )


_FIELDS = {step: step.value.replace("-", "_") for step in REPAIRS}


class Attempts(Terms):
    """How often a step may be tried on one machine and part, over incidents and Node objects."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=hyphened)

    end_job: Tries = Field(default=3, description="Times one job may be ended. Default 3.")
    reset_gpu: Tries = Field(
        default=2, description="Times a GPU may be reset. Default 2: then a harsher step is due."
    )
    reboot: Tries = Field(
        default=2,
        description="Times the machine may be rebooted. Default 2: what comes back a third time is"
        " hardware, so a third reboot becomes a replacement.",
    )
    replace: Tries = Field(
        default=1, description="Times the machine may be replaced. Default 1: then look at why."
    )
    window: Duration = Field(
        default=parse_duration("30d"),
        description="How far back attempts are remembered. Default 30d. Temporal must keep closed"
        " runs at least as long; the worker refuses to start otherwise.",
    )

    def of(self, step: Step) -> int:
        """How often the step may be tried within the window."""
        tries: int = getattr(self, _FIELDS[step])
        return tries


def _none_is_written(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"const": NO_DRAIN})


class FaultTerms(Terms):
    """What is done about one fault."""

    hold: StrictBool = Field(
        default=True,
        description="Whether new work is kept off the node. Default yes: it is urgent, harmless"
        " and reversible.",
    )
    tolerate: Duration = Field(
        default=parse_duration("10m"),
        description="How long running jobs may stay, counted from the first sight of the fault."
        " Default 10m: most troubles that heal have healed by then.",
    )
    sooner_if_idle: StrictBool = Field(
        default=False,
        description="Whether to go on before `tolerate` is over once no job uses the node's GPUs."
        " Default no.",
    )
    drain: Drain | None = Field(
        default=None,
        description="How the node is emptied, or none: jobs run to their end. Left out: 30m and"
        " then ask where there are steps, none where there are not.",
        json_schema_extra=_none_is_written,
    )
    steps: Annotated[tuple[Repair, ...], Field(max_length=len(REPAIRS))] = Field(
        default=(),
        description="Repairs in the order in which they are tried, mildest first: end-job,"
        " reset-gpu, reboot, replace. After the last: hand-off. Default none: nothing harmful"
        " happens that is not written down.",
        examples=[["reset-gpu", "reboot", "replace"]],
    )
    may_recover: StrictBool = Field(
        default=True,
        description="Whether the incident may end as recovered when the evidence goes away before"
        " any step. Default yes. No: only a person or a repair ends it.",
    )
    verify: Verify = Field(default=Verify(), description="What proves that a step helped.")
    attempts: Attempts = Field(
        default=Attempts(), description="How often each step may be tried on one machine and part."
    )
    probation: Duration = Field(
        default=parse_duration("1h"),
        description="How long the node is watched after release; a recurrence goes on with the"
        " same incident, one step higher. Default 1h.",
    )
    dry_run: StrictBool = Field(
        default=False,
        description="Whether everything about this fault is only decided, recorded and shown, in an"
        " incident of its own that touches nothing. Default no.",
    )
    notify: StrictBool = Field(
        default=False,
        description="Whether people are told although nothing is held. Hand-offs and open questions"
        " always tell. Default no.",
    )

    @model_validator(mode="before")
    @classmethod
    def _steps_bring_a_drain(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("drain") == NO_DRAIN:
            return given | {"drain": None}
        if isinstance(given, dict) and given.get("steps") and "drain" not in given:
            return given | {"drain": Drain()}
        return given
