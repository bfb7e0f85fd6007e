"""What is left of a document once everything of a wrong shape is taken out, so that rules can look
at the rest.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from policies.mistakes import Path
from policies.schema import Policy
from policies.shape import path_of

ROUNDS = 32
"""Taking one thing out may show another (a part that is now incomplete); it ends long before."""


@dataclass(slots=True)
class Rest:
    """The policy of what is left, the paths that were taken out, and where list items stood."""

    policy: Policy = field(default_factory=Policy)
    broken: tuple[Path, ...] = ()
    stood: dict[Path, list[int]] = field(default_factory=dict)

    def written(self, path: Path) -> Path:
        """A path in what is left, as a path in the document as written."""
        found: Path = ()
        for step in path:
            places = self.stood.get(found) if isinstance(step, int) else None
            found = (*found, places[step] if places and isinstance(step, int) else step)
        return found


def salvage(value: Any) -> Rest:
    """Take out what is wrong until the rest is a policy; at worst that is the empty one."""
    rest, left = Rest(), copy.deepcopy(value)
    for _ in range(ROUNDS):
        try:
            rest.policy = Policy.model_validate(left)
        except ValidationError as problems:
            wrong = {_culprit(each["type"], path_of(each)) for each in problems.errors()}
            if () in wrong:
                break
            rest.broken += tuple(rest.written(each) for each in wrong)
            for path in sorted(wrong, key=str, reverse=True):
                _take_out(left, path, rest.stood)
        else:
            return rest
    return Rest(broken=((),))


def _culprit(kind: str, path: Path) -> Path:
    """What to take out: the thing itself, or what is incomplete without it."""
    return path[:-1] if kind == "missing" else path


def _take_out(left: Any, path: Path, stood: dict[Path, list[int]]) -> None:
    *above, last = path
    holder = left
    for step in above:
        try:
            holder = holder[step]
        except (KeyError, IndexError, TypeError):
            return  # went with something above it
    if isinstance(holder, dict):
        holder.pop(last, None)
    elif isinstance(holder, list) and isinstance(last, int) and last < len(holder):
        places = stood.setdefault(tuple(above), list(range(len(holder))))
        del holder[last], places[last]
