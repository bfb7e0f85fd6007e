"""The part of the policy that translates other agents' node conditions into our faults."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from fleet.fault import FaultName
from fleet.names import DOMAIN
from policies.terms import Terms, refusal, shown


class Status(StrEnum):
    """The status of a node condition that counts as a fault."""

    TRUE = "True"
    FALSE = "False"


MOST_REPEATS = 3
LONGEST_REASON = 128
"""With at most three repeats, each of one character, matching takes a fraction of a second at
worst; a pattern that repeats a group can take for ever, and the watcher with it."""

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_REPEAT = re.compile(r"[*+]|\{\d*,")


def check_pattern(text: str) -> str:
    """Accept a regular expression whose matching is bound to end soon."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as problem:
        what = f"{shown(text)} is not a regular expression: {problem}"
        raise refusal(what, "write it like NvidiaXID79.*") from problem
    plain = _ESCAPED.sub("x", text)
    if _REPEATED_GROUP.search(plain) or len(_REPEAT.findall(plain)) > MOST_REPEATS:
        what = f"{shown(text)} may take for ever to match"
        raise refusal(what, f"repeat no group, and single characters {MOST_REPEATS} times at most")
    return text


def check_foreign(text: str) -> str:
    """Refuse our own conditions, which are read with all that they say, and `Ready`."""
    if text == "Ready":
        raise refusal("'Ready' is built in: it is host-unreachable", "take this signal out")
    if text.startswith(f"{DOMAIN}/"):
        raise refusal(f"{shown(text)} is our own and is read as it is", "take this signal out")
    return text


class Signal(Terms):
    """A condition of another agent, and the fault that it stands for. Unlisted ones do nothing;
    status Unknown never stands for a fault.
    """

    type: Annotated[str, Field(min_length=1, max_length=316), AfterValidator(check_foreign)] = (
        Field(description="Type of the node condition.", examples=["AcceleratedHardwareReady"])
    )
    status: Status = Field(
        description='Status that means fault: "True" or "False", in quotes.', examples=["False"]
    )
    reason: Annotated[str, Field(max_length=400), AfterValidator(check_pattern)] = Field(
        default=".*",
        description="Regular expression that the whole reason must match. The first signal of the"
        " list that matches a condition counts. It may repeat no group, and single characters three"
        " times at most, so that it always ends. Default .*: any.",
        examples=["NvidiaXID79.*"],
    )
    fault: FaultName = Field(description="The fault it stands for.", examples=[FaultName.GPU_LOST])

    def matches(self, type_: str, status: str, reason: str) -> bool:
        """Whether a condition is the one meant, judged by the first characters of its reason."""
        same = type_ == self.type and status == self.status.value
        return same and re.fullmatch(self.reason, reason[:LONGEST_REASON]) is not None
