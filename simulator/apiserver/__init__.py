"""An emulated Kubernetes API server: one asyncio process, plain HTTP, state in a journal.

What it promises is what `tests/contract` checks against the real one and against this one.
"""

from simulator.apiserver.server import ApiServer

__all__ = ["ApiServer"]
