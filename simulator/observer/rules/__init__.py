"""The promises, one small function each over the whole transcript. `ALL` lists them."""

from collections.abc import Mapping

from simulator.observer.promise import Rule
from simulator.observer.rules.bounds import agent, budget, taints, twice
from simulator.observer.rules.harm import (
    confirmed,
    evidence,
    held,
    left_alone,
    uid,
    unknown,
)
from simulator.observer.rules.machines import approved, drained, grace
from simulator.observer.rules.proof import computed, proof
from simulator.observer.rules.release import release

ALL: Mapping[str, Rule] = {
    "agent": agent,
    "approved": approved,
    "budget": budget,
    "computed": computed,
    "confirmed": confirmed,
    "drained": drained,
    "evidence": evidence,
    "grace": grace,
    "held": held,
    "left-alone": left_alone,
    "proof": proof,
    "release": release,
    "taints": taints,
    "twice": twice,
    "uid": uid,
    "unknown": unknown,
}
