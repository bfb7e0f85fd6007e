"""One side of a pair of nodes: `python -m probes.compute.pair PLAN`, on both of them at once.

The two greet each other first, over plain TCP on the hosts' network, and only then does either
start its ranks, one a GPU. So whoever waits for a partner that never comes says just that: only
what happens after a greeting is a course of the pair. Whoever else calls is sent away.
"""

import json
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from probes.compute import reduce
from probes.compute.rank import TIMES, TORCH, WORDS, RankPlan

LINE_BYTES = 4_096
"""Of a greeting."""
ANSWER_SECONDS = 10.0
"""For a caller to greet, and for an answer."""
RETRY_SECONDS = 0.2
"""Between two tries to reach the other side, which may not listen yet."""
CALLERS = 1_000
"""Callers that are sent away before a side gives up."""
WORDS_LIMIT = 200


@dataclass(frozen=True, slots=True)
class PairPlan:
    """Which side this is, where both meet and what they say, how many seconds they wait for each
    other (`meet`) and then add up, and with which GPUs (short PCI addresses, joined by commas)."""

    side: int
    host: str
    port: int
    meeting: str
    meet: float
    seconds: float
    gpu: str
    places: str = ""
    words: int = WORDS
    times: int = TIMES
    backend: str = TORCH

    @property
    def gpus(self) -> int:
        """How many GPUs this side has."""
        return len(self.gpu.split(","))

    def text(self) -> str:
        """As the command line has it."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Heard:
    """What a side told of its meeting: whether it was greeted, else what kept it from that."""

    greeted: bool = False
    alone: str = ""
    port: str = ""
    unlike: str = ""


def main(arguments: Sequence[str]) -> int:
    """Print; the exit status of `reduce`, or 1 where the two did not meet."""
    plan = PairPlan(**json.loads(arguments[0]))
    try:
        gpus = _meet(plan, time.monotonic() + plan.meet)
    except TimeoutError as problem:
        return _end("alone", problem)
    except OSError as problem:
        return _end("port", problem)
    if gpus != plan.gpus:
        return _end("unlike", f"{plan.gpus} GPUs here, {gpus} there")
    _print({"greeted": gpus})
    ranks = RankPlan(
        rank=plan.side * gpus,
        world=2 * gpus,
        host=plan.host,
        port=plan.port + 1,
        seconds=plan.seconds,
        gpu=plan.gpu,
        places=plan.places,
        words=plan.words,
        times=plan.times,
        backend=plan.backend,
    )
    return reduce.main([ranks.text()])


def heard(output: str) -> Heard:
    """The meeting in a side's output: pure, and never raising."""
    for line in output.splitlines()[: reduce.LINE_LIMIT]:
        with suppress(ValueError, RecursionError):
            match json.loads(line):
                case {"greeted": int()}:
                    return Heard(greeted=True)
                case {"alone": str() as why}:
                    return Heard(alone=why[:WORDS_LIMIT] or "no word")
                case {"port": str() as why}:
                    return Heard(port=why[:WORDS_LIMIT] or "no word")
                case {"unlike": str() as why}:
                    return Heard(unlike=why[:WORDS_LIMIT] or "no word")
    return Heard()


def _meet(plan: PairPlan, until: float) -> int:
    """The other side's GPUs. Raises TimeoutError where nobody came, OSError where we can't listen.

    `until` is in monotonic seconds.
    """
    return _listen(plan, until) if plan.side == 0 else _come(plan, until)


def _listen(plan: PairPlan, until: float) -> int:
    family = socket.AF_INET6 if ":" in plan.host else socket.AF_INET
    with socket.create_server((plan.host, plan.port), family=family) as server:
        for _ in range(CALLERS):
            server.settimeout(_left(until))
            peer = server.accept()[0]
            with peer, suppress(OSError, ValueError):
                peer.settimeout(min(ANSWER_SECONDS, _left(until)))
                gpus = _gpus(plan, _line(peer))
                peer.sendall(_greeting(plan))
                return gpus
    raise TimeoutError(f"{CALLERS} callers, and none was the other side")


def _come(plan: PairPlan, until: float) -> int:
    problem: Exception = TimeoutError("nobody listened")
    while (left := until - time.monotonic()) > 0:
        try:
            at = plan.host, plan.port
            with socket.create_connection(at, min(ANSWER_SECONDS, left)) as peer:
                peer.sendall(_greeting(plan))
                return _gpus(plan, _line(peer))
        except (OSError, ValueError) as found:
            problem = found
        time.sleep(max(0.0, min(RETRY_SECONDS, until - time.monotonic())))
    raise TimeoutError(f"{type(problem).__name__}: {problem}")


def _greeting(plan: PairPlan) -> bytes:
    return json.dumps({"meeting": plan.meeting, "gpus": plan.gpus}).encode() + b"\n"


def _gpus(plan: PairPlan, line: bytes) -> int:
    """Raises ValueError for a stranger."""
    match json.loads(line):
        case {"meeting": plan.meeting, "gpus": int() as gpus} if gpus > 0:
            return gpus
    raise ValueError("a stranger")


def _line(peer: socket.socket) -> bytes:
    """Up to the end of a line; raises ValueError where none comes."""
    said = b""
    while not said.endswith(b"\n"):
        part = peer.recv(LINE_BYTES - len(said))
        if not part:
            raise ValueError("no greeting")
        said += part
    return said


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("nobody came")
    return left


def _end(word: str, why: object) -> int:
    _print({word: str(why)[:WORDS_LIMIT]})
    return 1


def _print(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
