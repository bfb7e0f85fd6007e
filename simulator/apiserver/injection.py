"""Trouble on order, for tests: slow, failing or lost answers to chosen requests.

Over HTTP: `POST /sim/faults` with the fields of Fault, `DELETE /sim/faults`, `POST /sim/compact`,
`POST /sim/close-watches`; for system:masters only.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from simulator.apiserver.status import ApiError, bad_request

LONGEST_DELAY_S = 600.0


@dataclass(slots=True)
class Fault:
    """Trouble for the next `times` requests whose verb and path (a regular expression) match.

    `delay_s`: wait before anything else. `code`: answer with this failure, do nothing.
    `drop`: do it, then close the connection without an answer.
    """

    verb: str = ".*"
    path: str = ""
    times: int = 1
    delay_s: float = 0.0
    code: int = 0
    reason: str = ""
    message: str = "injected"
    retry_after_s: int = 0
    drop: bool = False
    seen: int = field(default=0, init=False)

    def matches(self, verb: str, path: str) -> bool:
        """Whether it is meant for this request and not used up."""
        return (
            self.seen < self.times
            and re.fullmatch(self.verb, verb) is not None
            and re.search(self.path, path) is not None
        )

    def error(self) -> ApiError:
        """The failure to answer with."""
        return ApiError(self.code, self.reason, self.message, retry_after_s=self.retry_after_s)


class Faults:
    """The faults that are ordered; the first that matches is used."""

    def __init__(self) -> None:
        self._ordered: list[Fault] = []

    def order(self, fault: Fault) -> Fault:
        """Order a fault; `seen` of it counts its uses."""
        if not 0 <= fault.delay_s <= LONGEST_DELAY_S:
            raise bad_request(f"delay_s is outside 0..{LONGEST_DELAY_S:.0f}")
        self._ordered.append(fault)
        return fault

    def clear(self) -> None:
        """Order nothing any more."""
        self._ordered.clear()

    def take(self, verb: str, path: str) -> Fault | None:
        """The fault for a request, counted as used."""
        for fault in self._ordered:
            if fault.matches(verb, path):
                fault.seen += 1
                return fault
        return None


def read_fault(body: Any) -> Fault:
    """A Fault from the JSON of a request."""
    try:
        return Fault(**body)
    except TypeError as error:
        raise bad_request(f"no such fault: {error}") from error
