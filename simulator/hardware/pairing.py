"""What a child that adds up with another node would do and print: it really meets the other side,
and tells of its ranks from the truth about both machines.

It is asked with the plan that the real one is asked with, greets in the same words, and answers in
the same lines. A machine with a bad network greets, and then never comes to an end.
"""

import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simulator.hardware.machine import Machine
from simulator.hardware.nature import Ail
from simulator.hardware.root import MODEL

PACE, SLOWED = 48e9, 10
SIZE = 1 << 31
ADDITIONS = 6
OVER = 124
RETRY_SECONDS = 0.02
Line = Mapping[str, Any]


def pair_child(machine: Machine, arguments: Sequence[str]) -> int:
    """Print one side of a pair; 1 where nobody came, 124 where it came to no end in its time."""
    plan = json.loads(arguments[0])
    gpus = len(plan["gpu"].split(","))
    ails = machine.read().ails
    mine = PACE / SLOWED if Ail.SLOW_NETWORK in ails else PACE
    try:
        other = _swap(plan, plan["port"], {"meeting": plan["meeting"], "gpus": gpus}, plan["meet"])
    except OSError as problem:
        return _say({"alone": str(problem) or "nobody came"}, 1)
    if other["gpus"] != gpus:
        return _say({"unlike": f"{gpus} GPUs here, {other['gpus']} there"}, 1)
    _say({"greeted": gpus})
    ranks = range(plan["side"] * gpus, (plan["side"] + 1) * gpus)
    for rank in ranks:
        _say({"rank": rank, "met": 2 * gpus, "model": MODEL})
    if Ail.BAD_NETWORK in ails:
        time.sleep(plan["seconds"])
        return OVER
    try:
        theirs = _swap(plan, plan["port"] + 1, {"pace": mine}, plan["seconds"])
    except OSError:
        return OVER
    for line in _additions(ranks, 2 * gpus, min(mine, theirs["pace"])):
        _say(line)
    return 0


def _additions(ranks: range, world: int, pace: float) -> Iterator[Line]:
    seconds = 2 * (world - 1) / world * SIZE / pace
    for rank in ranks:
        for _ in range(ADDITIONS):
            yield {"rank": rank, "bytes": SIZE, "seconds": seconds, "wrong": 0}
        yield {"rank": rank, "end": True}


def _swap(plan: Mapping[str, Any], port: int, line: Line, seconds: float) -> dict[str, Any]:
    """A line for a line with the other side; raises OSError where it does not come in time."""
    until = time.monotonic() + seconds
    at = plan["host"], port
    if plan["side"] == 0:
        with socket.create_server(at) as server:
            server.settimeout(seconds)
            with server.accept()[0] as peer:
                return _over(peer, line, until)
    while True:
        try:
            with socket.create_connection(at, max(0.01, until - time.monotonic())) as peer:
                return _over(peer, line, until)
        except ConnectionRefusedError:
            if time.monotonic() >= until:
                raise
            time.sleep(RETRY_SECONDS)


def _over(peer: socket.socket, line: Line, until: float) -> dict[str, Any]:
    peer.settimeout(max(0.01, until - time.monotonic()))
    peer.sendall(json.dumps(line).encode() + b"\n")
    with peer.makefile() as file:
        said: dict[str, Any] = json.loads(file.readline() or "{}")
    if not said:
        raise ConnectionError("the other side has gone")
    return said


def _say(line: Line, status: int = 0) -> int:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    return status
