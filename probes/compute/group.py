"""Ranks that add up arrays together: over TCP on CPUs, for tests, or by NCCL on GPUs.

A rank of the TCP group sends what it has to rank 0, which adds and sends the sum back. Every wait
has an end: a rank that is not there, or stops, is an error of the others and never a hang.
"""

import socket
import time
from contextlib import suppress
from typing import Any, Protocol

from probes.compute.backend import Array, Device

RETRY = 0.05
"""Seconds between two tries to reach rank 0, which may not listen yet."""


class Group(Protocol):
    """Some ranks, this one among them. Raises OSError or RuntimeError when one fails."""

    def add_up(self, array: Array) -> None:
        """Make `array` the sum of all ranks' arrays."""

    def close(self) -> None:
        """Leave."""


class TcpGroup:
    """CPUs; arrays are numpy's, of 64-bit numbers, all of one length."""

    def __init__(self, rank: int, world: int, at: tuple[str, int], until: float) -> None:
        """Meet the others at `at`, where rank 0 listens; `until` is in monotonic seconds."""
        self._until = until
        self._rank = rank
        self._peers = self._gather(at, world) if rank == 0 else [self._reach(at)]

    def add_up(self, array: Array) -> None:
        """See the protocol."""
        if self._rank:
            self._send(self._peers[0], array)
            self._receive(self._peers[0], array)
            return
        part = array.copy()
        for peer in self._peers:
            self._receive(peer, part)
            array += part
        for peer in self._peers:
            self._send(peer, array)

    def close(self) -> None:
        """See the protocol."""
        for peer in self._peers:
            with suppress(OSError):
                peer.close()

    def _gather(self, at: tuple[str, int], world: int) -> list[socket.socket]:
        with socket.create_server(at, reuse_port=False) as server:
            peers = []
            for _ in range(world - 1):
                server.settimeout(self._left())
                peers.append(server.accept()[0])
        return peers

    def _reach(self, at: tuple[str, int]) -> socket.socket:
        while True:
            try:
                return socket.create_connection(at, self._left())
            except ConnectionRefusedError:
                time.sleep(min(RETRY, self._left()))

    def _send(self, peer: socket.socket, array: Array) -> None:
        peer.settimeout(self._left())
        peer.sendall(memoryview(array).cast("B"))

    def _receive(self, peer: socket.socket, array: Array) -> None:
        room = memoryview(array).cast("B")
        while room:
            peer.settimeout(self._left())
            number = peer.recv_into(room)
            if not number:
                raise ConnectionError("a rank has gone")
            room = room[number:]

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("time is over")
        return left


class NcclGroup:
    """GPUs, by torch.distributed; `torch` comes from the child, the only one that may import it."""

    def __init__(
        self, torch: Any, rank: int, world: int, at: tuple[str, int], seconds: float
    ) -> None:
        """Meet the others at `at`; raises what torch raises."""
        from datetime import timedelta

        self._distributed = torch.distributed
        self._distributed.init_process_group(
            "nccl",
            init_method=f"tcp://[{at[0]}]:{at[1]}" if ":" in at[0] else f"tcp://{at[0]}:{at[1]}",
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=seconds),
        )

    def add_up(self, array: Array) -> None:
        """See the protocol."""
        self._distributed.all_reduce(array)

    def close(self) -> None:
        """See the protocol."""
        self._distributed.destroy_process_group()


def contribution(device: Device, rank: int, words: int, seed: int) -> Array:
    """What a rank brings: numbers that everybody can work out."""
    return (device.count(0, words) ^ seed) * (2 * rank + 3) + rank


def expected(device: Device, world: int, words: int, seed: int) -> Array:
    """What all of them come to."""
    total = contribution(device, 0, words, seed)
    for rank in range(1, world):
        total = total + contribution(device, rank, words, seed)
    return total
