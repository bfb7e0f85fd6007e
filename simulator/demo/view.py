"""What a person sees of a run: a live picture in a terminal, plain lines otherwise, or nothing."""

import sys
import time
from collections.abc import Mapping
from typing import Protocol, TextIO

from rich.console import Console

from simulator.demo.screen import Screen
from simulator.observer.sight import Json


class View(Protocol):
    """Takes what happens; `say` is about a node or, with an empty name, about the run."""

    def say(self, node: str, sentence: str) -> None:
        """One sentence."""
        ...

    def show(self, nodes: Mapping[str, Json]) -> None:
        """The nodes as they stand."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


class Plain:
    """A line a sentence, with the seconds since the start."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._started = time.monotonic()

    def say(self, node: str, sentence: str) -> None:
        seconds = time.monotonic() - self._started
        self._out.write(f"{seconds:6.1f}s  {node:<8} {sentence}\n")
        self._out.flush()

    def show(self, nodes: Mapping[str, Json]) -> None:
        """Nothing: lines tell what changed."""

    def close(self) -> None:
        """Nothing to put away."""


class Silent:
    """For programs that read only the summary."""

    def say(self, node: str, sentence: str) -> None:
        """Nothing."""

    def show(self, nodes: Mapping[str, Json]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def choose(as_json: bool) -> View:
    """The view that fits standard output."""
    if as_json:
        return Silent()
    console = Console()
    return Screen(console) if console.is_terminal else Plain(sys.stdout)
