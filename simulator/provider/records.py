"""What the provider must not forget: operations and machines, a JSON file each, replaced whole.

An operation is written before it is acted upon, so that a provider that was killed goes on with it.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Records:
    """The files under one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for kind in ("operations", "machines"):
            (directory / kind).mkdir(parents=True, exist_ok=True)

    def operation(self, name: str) -> Record | None:
        """The operation of this id."""
        return _read(self._at("operations", name))

    def machine(self, node: str) -> Record | None:
        """The machine behind this node name."""
        return _read(self._at("machines", node))

    def operations(self) -> Iterator[Record]:
        """Every operation there ever was."""
        for path in sorted((self._directory / "operations").glob("*.json")):
            found = _read(path)
            if found is not None:
                yield found

    def write_operation(self, operation: Mapping[str, Any]) -> None:
        """Keep it, whatever happens to this process."""
        _write(self._at("operations", operation["id"]), operation)

    def write_machine(self, node: str, machine: Mapping[str, Any]) -> None:
        """Keep it, whatever happens to this process."""
        _write(self._at("machines", node), machine)

    def _at(self, kind: str, name: str) -> Path:
        """Ids come from outside: never a path."""
        return self._directory / kind / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> Record | None:
    try:
        found: Record = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return found


def _write(path: Path, content: Mapping[str, Any]) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(content))
    os.replace(beside, path)
