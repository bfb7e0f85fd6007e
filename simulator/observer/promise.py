"""What a run promised beforehand, and what it is to have broken a promise."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from simulator.observer.transcript import Write


@dataclass(frozen=True, slots=True)
class Promises:
    """`budget` is the most nodes disrupted at once: by scope (`cluster`, or a label's short name).

    `labels` maps every scope but cluster and job to the label of nodes that it goes by, `job` is
    the label of pods that names their job (empty: none is counted). `hand_offs` are the scopes in
    which a node that was handed to a person still counts. `foreign` are the types of conditions of
    others that count as evidence.
    """

    budget: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    job: str = ""
    hand_offs: tuple[str, ...] = ("cluster",)
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: the rule's name, when, and what was done in one sentence."""

    rule: str
    when: datetime
    what: str


Rule = Callable[[list[Write], Promises], Iterator[Violation]]


def judge(writes: list[Write], promises: Promises, rules: Iterable[Rule]) -> list[Violation]:
    """Every violation of every rule, in the order of time."""
    found = [violation for rule in rules for violation in rule(writes, promises)]
    return sorted(found, key=lambda violation: violation.when)
