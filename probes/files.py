"""Read files that may hang in a driver (`/proc/driver/nvidia`, PCI config space), in a child.

The child is the interpreter without site packages and with nothing to import: about 15 ms and
8 MiB, for a moment. It says each file as it has read it, so a hang loses nothing of those before.
Of patterns it knows `*` in the place of a whole name.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.child import Tool

LIMIT = 5.0
"""Seconds for one round of reading."""
FILES_LIMIT = 2_048
"""Files of one round: 32 adapters with some twenty counters each are the most that anybody has."""

_SCRIPT = """
import posix, sys
listed = {}
def names(at):
    if at not in listed:
        try:
            listed[at] = [each for each in posix.listdir(at or '/') if each[0] != '.']
        except OSError:
            listed[at] = []
    return listed[at]
def paths(at, wanted):
    for number, name in enumerate(wanted):
        if name == '*':
            for each in names(at):
                yield from paths(f'{at}/{each}', wanted[number + 1:])
            return
        at = f'{at}/{name}'
    try:
        posix.lstat(at)
    except OSError:
        return
    yield at
size, most, patterns = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
for path in sorted(path for each in patterns for path in paths('', each.split('/')[1:]))[:most]:
    content, problem = b'', ''
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            content = posix.read(file, size)
        finally:
            posix.close(file)
    except OSError as trouble:
        problem = trouble.strerror or 'unreadable'
    line = f'{content.hex()},{problem.encode().hex()},{path}\\n'
    posix.write(1, line.encode('utf-8', 'surrogateescape'))
"""


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What was read: contents by path, problems by path, and whether the reading hung."""

    contents: dict[Path, bytes]
    problems: dict[Path, str]
    hung: bool = False


def read_files(
    reader: Tool, patterns: Sequence[str], size: int, keep_open: Sequence[int] = ()
) -> Glimpse:
    """The first `size` bytes of every file that matches an absolute pattern.

    Never raises, never hangs.
    """
    limits = [str(size), str(FILES_LIMIT)]
    command = [sys.executable, "-I", "-S", "-c", _SCRIPT, *limits, *patterns]
    ended = reader.run(command, LIMIT, keep_open)
    contents: dict[Path, bytes] = {}
    problems: dict[Path, str] = {}
    for line in ended.output.splitlines():
        try:
            content, problem, path = line.split(",", 2)
            if problem:
                problems[Path(path)] = bytes.fromhex(problem).decode()
            else:
                contents[Path(path)] = bytes.fromhex(content)
        except ValueError:
            continue
    if ended.status != 0 and not ended.hung:
        problems[Path(patterns[0])] = f"the reader ended with {ended.status}: {ended.errors[:200]}"
    return Glimpse(contents, problems, ended.hung)
