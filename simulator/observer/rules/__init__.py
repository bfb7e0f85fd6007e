"""The promises, one small function each over the whole transcript. `ALL` lists them."""

from collections.abc import Mapping

from simulator.observer.promise import Rule
from simulator.observer.rules.bounds import agent, budget, taints, twice
from simulator.observer.rules.harm import (
    drained,
    evidence,
    grace,
    held,
    left_alone,
    uid,
    unknown,
)
from simulator.observer.rules.release import release

ALL: Mapping[str, Rule] = {
    "agent": agent,
    "budget": budget,
    "drained": drained,
    "evidence": evidence,
    "grace": grace,
    "held": held,
    "left-alone": left_alone,
    "release": release,
    "taints": taints,
    "twice": twice,
    "uid": uid,
    "unknown": unknown,
}
