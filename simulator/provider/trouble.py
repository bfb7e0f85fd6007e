"""Trouble on order, as providers make it: slow, silent, lost answers, errors, no capacity.

`POST /sim/faults` with the fields of Fault; `DELETE /sim/faults` orders nothing any more.
"""

import re
from dataclasses import dataclass, field
from typing import Any

LONGEST_DELAY_S = 600.0


@dataclass(slots=True)
class Fault:
    """Trouble for the next `times` requests whose method and path match.

    `delay_s`: wait first. `code`: answer so, and begin nothing. `lost`: do it, then close the
    connection without an answer. `fail`: the operation is begun and fails with this reason.
    """

    method: str = ".*"
    path: str = ""
    times: int = 1
    delay_s: float = 0.0
    code: int = 0
    lost: bool = False
    fail: str = ""
    seen: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.delay_s <= LONGEST_DELAY_S:
            raise ValueError(f"delay_s is outside 0..{LONGEST_DELAY_S:.0f}")

    def matches(self, method: str, path: str) -> bool:
        """Whether it is meant for this request and not used up."""
        return (
            self.seen < self.times
            and re.fullmatch(self.method, method) is not None
            and re.search(self.path, path) is not None
        )


NONE = Fault(times=0)


class Faults:
    """The faults that are ordered; the first that matches is used."""

    def __init__(self) -> None:
        self._ordered: list[Fault] = []

    def order(self, fault: Fault) -> Fault:
        """Order a fault; `seen` of it counts its uses."""
        self._ordered.append(fault)
        return fault

    def clear(self) -> None:
        """Order nothing any more."""
        self._ordered.clear()

    def take(self, method: str, path: str) -> Fault:
        """The fault for a request, counted as used, or one that does nothing."""
        for fault in self._ordered:
            if fault.matches(method, path):
                fault.seen += 1
                return fault
        return NONE


def read_fault(body: Any) -> Fault:
    """A Fault from the JSON of a request; raises ValueError."""
    try:
        return Fault(**body)
    except TypeError as error:
        raise ValueError(f"no such fault: {error}") from error
