"""How the fleet stands, scope by scope: what the watcher counts and the budget judges by.

Only whoever sees every node can count them. A census is complete, so one that is lost or comes
twice does no harm; how old one may be before nothing is granted by it is the budget's matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ScopeCensus:
    """The nodes of one scope.

    `size` is how many there are, `held` how many carry our hold, `down` names the ones that serve
    nobody for whatever reason of others' or their own (not Ready, cordoned, being deleted), and
    `handed_off` those that people have, as last listed. A node may be both, or hold a lease, or
    wait for one: whoever adds up must not count it twice.
    """

    size: int
    held: int = 0
    down: tuple[str, ...] = ()
    handed_off: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Census:
    """Every scope at one moment, by `<scope>/<key>` (`rack/r7`); `barred` are those whose breaker
    is open, each with its reason in words: nothing new is granted there."""

    at: datetime
    scopes: Mapping[str, ScopeCensus] = field(default_factory=dict)
    barred: Mapping[str, str] = field(default_factory=dict)
