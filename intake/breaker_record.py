"""The ConfigMap `gpumend-breaker`: circuits that are not closed, and people's word to close them.

    kubectl -n gpumend get configmap gpumend-breaker -o yaml
    kubectl -n gpumend edit configmap gpumend-breaker
      close.pool.training: '{"actor": "me", "reason": "the new agent was wrong"}'

One key a circuit, `close.<key>` to close it; the watcher takes that key out in the write that
heeds it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from fleet.instant import format_instant, parse_instant
from fleet.names import NAMESPACE
from policies.breaker import Circuit, Phase

NAME = "gpumend-breaker"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PATH = f"{CONFIG_MAPS}/{NAME}"
CLOSE = "close."
BORN = "born."
"""Begins the key of a circuit for nodes that have just been born: `born.gpu-lost.pool.training`."""
LONGEST = 300
"""Characters kept of a cause and of what a person says."""


@dataclass(frozen=True, slots=True)
class CloseOrder:
    """A person's word that a breaker may close."""

    actor: str
    reason: str

    def __str__(self) -> str:
        return f"{self.actor}: {self.reason}"


def circuit_key(scope: str) -> str:
    """The key of a scope's circuit: `pool/training` is `pool.training`.

    A ConfigMap's keys take few characters, so any other is written as its code, as `_2f`; no two
    scopes meet.
    """
    kind, _, value = scope.partition("/")
    plain = re.sub(r"[^A-Za-z0-9-]", _coded, kind)
    return f"{plain}.{re.sub(r'[^A-Za-z0-9.-]', _coded, value)}"


def born_key(scope: str, fault: str) -> str:
    """The key of the circuit for nodes of a scope that were born with a fault."""
    return f"{BORN}{fault}.{circuit_key(scope)}"


def close_key(key: str) -> str:
    """Where a person writes `{"actor", "reason"}` to close the circuit with this key."""
    return CLOSE + key


def format_circuit(circuit: Circuit) -> str:
    """A circuit as JSON that people can read."""
    fields = {
        "scope": circuit.scope,
        "phase": circuit.phase.value,
        "since": format_instant(circuit.since),
        "turn_at": format_instant(circuit.turn_at),
        "accepted": circuit.accepted,
        "cause": circuit.cause[:LONGEST],
        "told": circuit.told,
        "by": circuit.by[:LONGEST],
        "opened": format_instant(circuit.opened) if circuit.opened else "",
    }
    return json.dumps({name: value for name, value in fields.items() if value}, ensure_ascii=False)


def parse_circuit(text: str) -> Circuit:
    """Raises ValueError if it is not one."""
    try:
        fields = json.loads(text)
        return Circuit(
            scope=str(fields["scope"]),
            phase=Phase(fields["phase"]),
            since=parse_instant(fields["since"]),
            turn_at=parse_instant(fields["turn_at"]),
            accepted=max(0, int(fields.get("accepted", 0))),
            cause=str(fields.get("cause", "")),
            told=fields.get("told") is True,
            by=str(fields.get("by", "")),
            opened=parse_instant(fields["opened"]) if fields.get("opened") else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise ValueError(f"not a circuit: {text[:100]!r} ({problem})") from problem


def parse_order(text: str) -> CloseOrder:
    """Raises ValueError if actor or reason is missing."""
    try:
        fields: Mapping[str, object] = json.loads(text)
        actor, reason = fields["actor"], fields["reason"]
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"actor or reason is missing: {text[:100]!r} ({problem})") from problem
    if not (isinstance(actor, str) and isinstance(reason, str) and actor and reason):
        raise ValueError(f"actor and reason must be words: {text[:100]!r}")
    return CloseOrder(actor[:LONGEST], reason[:LONGEST])


def _coded(character: "re.Match[str]") -> str:
    return "".join(f"_{byte:02x}" for byte in character[0].encode())
