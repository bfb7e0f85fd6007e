"""One batch between a process and the budget: asks and give-backs in, what is granted out."""

from dataclasses import dataclass

from policies.ledger import Ask


@dataclass(frozen=True, slots=True)
class Batch:
    """Many at once, since a workflow takes ten updates at a time and no more.

    `gives` are incidents that need nothing any more, `hand_offs` those whose nodes people have now.
    """

    asks: tuple[Ask, ...] = ()
    gives: tuple[str, ...] = ()
    hand_offs: tuple[Ask, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """`granted`: those of the batch's asks that hold a lease now; `why` says what stops the rest.

    `why` maps an incident to one sentence.
    """

    granted: tuple[str, ...]
    why: dict[str, str]
