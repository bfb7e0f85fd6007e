"""Read files that may hang in a driver (`/proc/driver/nvidia`, PCI config space), in a child.

The child is the interpreter without site packages: about 15 ms and 8 MiB, for a moment.
"""

import base64
import json
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
import base64, glob, json, sys
size, most, patterns = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
for path in sorted(path for each in patterns for path in glob.glob(each))[:most]:
    try:
        with open(path, 'rb', buffering=0) as file:
            said = [path, base64.b64encode(file.read(size)).decode(), '']
    except OSError as problem:
        said = [path, '', problem.strerror or 'unreadable']
    print(json.dumps(said), flush=True)
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
    """The first `size` bytes of every file that matches a pattern. Never raises, never hangs."""
    limits = [str(size), str(FILES_LIMIT)]
    command = [sys.executable, "-I", "-S", "-c", _SCRIPT, *limits, *patterns]
    ended = reader.run(command, LIMIT, keep_open)
    contents: dict[Path, bytes] = {}
    problems: dict[Path, str] = {}
    for line in ended.output.splitlines():
        try:
            path, content, problem = json.loads(line)
            if problem:
                problems[Path(path)] = str(problem)
            else:
                contents[Path(path)] = base64.b64decode(content)
        except (ValueError, TypeError):
            continue
    if ended.status != 0 and not ended.hung:
        problems[Path(patterns[0])] = f"the reader ended with {ended.status}: {ended.errors[:200]}"
    return Glimpse(contents, problems, ended.hung)
