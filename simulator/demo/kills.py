"""Where a process can be killed: at a call that changes the world, before it or after it.

`PROCESS@STEP[:before|after]`. A step is known by the request that it makes of the API server or the
provider; the process that is killed is the one that asks, or Temporal while somebody else's request
is held. Some steps are taken in the long script alone.
"""

import re
from dataclasses import dataclass

PROCESSES = ("agent", "watcher", "worker", "temporal")
PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Call:
    """The request by which a step changes the world; `path` and `body` are regular expressions.

    A call of the account PROVIDER goes to the provider, and `verb` is the change that it asks for.
    """

    account: str
    verb: str
    path: str = ""
    body: str = ""
    large: bool = False


_NODE = r"^/api/v1/nodes/[^/]+$"
_PODS = r"^/api/v1/namespaces/gpumend/pods$"

CALLS: dict[str, dict[str, Call]] = {
    "agent": {
        "condition": Call("gpumend-agent", "patch", r"^/api/v1/nodes/[^/]+/status$", "fault="),
        "heartbeat": Call("gpumend-agent", "(create|update|patch)", r"/leases"),
    },
    "watcher": {
        "admit": Call("watcher", "patch", _NODE, "pending"),
        "breaker": Call("watcher", "(create|patch)", r"/configmaps", "open", large=True),
    },
    "worker": {
        "hold": Call("worker", "patch", _NODE, "owned"),
        "drain": Call("worker", "create", r"/pods/[^/]+/eviction$"),
        "reset-gpu": Call("worker", "create", _PODS, "reset-gpu"),
        "reboot": Call("worker", "create", _PODS, '"reboot"'),
        "verify": Call("worker", "create", _PODS, r'^(?!.*"prove-).*"verify"'),
        "prove": Call("worker", "create", _PODS, '"prove-'),
        "proven": Call("worker", "patch", _NODE, r'"gpumend\.io/proof"'),
        "sweep": Call("worker", "patch", _NODE, r'"value":\s*"sweep"', large=True),
        "release": Call("worker", "patch", _NODE, "probation"),
        "ask": Call("worker", "create", r"/events$", "IncidentAsks", large=True),
        "force": Call("worker", "delete", r"^/api/v1/namespaces/default/pods/", large=True),
        "launch": Call(PROVIDER, "launch", large=True),
        "replace": Call(PROVIDER, "terminate", large=True),
        "restart": Call(PROVIDER, "restart", large=True),
        "close": Call("worker", "patch", _NODE, r'"gpumend\.io/incident":\s*null'),
    },
}
CALLS["temporal"] = {**CALLS["watcher"], **CALLS["worker"]}


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill `process` at `step`; `after`: the API server has done it and not yet answered."""

    process: str
    step: str
    after: bool = False

    @property
    def call(self) -> Call:
        """The request to wait for."""
        return CALLS[self.process][self.step]

    def __str__(self) -> str:
        return f"{self.process}@{self.step}:{'after' if self.after else 'before'}"


MATRIX = tuple(
    Kill(process, step, after)
    for process, steps in CALLS.items()
    for step in steps
    for after in (False, True)
)


def parse_kill(text: str) -> Kill:
    """Read `worker@drain:after`; raise ValueError that says which there are."""
    found = re.fullmatch(r"([a-z]+)@([a-z-]+)(?::(before|after))?", text)
    if not found or found[1] not in CALLS or found[2] not in CALLS[found[1]]:
        known = "; ".join(f"{process}@{'|'.join(steps)}" for process, steps in CALLS.items())
        raise ValueError(f"no such kill: {text!r}. There are, each with :before or :after: {known}")
    return Kill(found[1], found[2], found[3] == "after")
