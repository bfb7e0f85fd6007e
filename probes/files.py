"""Read files that may hang in a driver (`/proc/driver/nvidia`, PCI config space), in a child.

The child is the interpreter without site packages and with nothing to import: about 15 ms and
8 MiB, for a moment. Of patterns it knows `*` in the place of a whole name.
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
def paths(at, names):
    if not names:
        try:
            posix.lstat(at)
        except OSError:
            return
        yield at
        return
    found = names[:1]
    if found == ['*']:
        try:
            found = [each for each in posix.listdir(at or '/') if each[0] != '.']
        except OSError:
            return
    for each in found:
        yield from paths(f'{at}/{each}', names[1:])
size, most, patterns = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
for path in sorted(path for each in patterns for path in paths('', each.split('/')[1:]))[:most]:
    content, problem = b'', ''
    try:
        with open(path, 'rb', buffering=0) as file:
            content = file.read(size)
    except OSError as trouble:
        problem = trouble.strerror or 'unreadable'
    print(f'{content.hex()},{problem.encode().hex()},{path}', flush=True)
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
