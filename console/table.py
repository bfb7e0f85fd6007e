"""Tables for people: plain text in columns, the last one cut where a terminal ends."""

import shutil
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta

_GAP = "  "


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Lines of columns. `width` None: as wide as it takes."""
    every = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[n]) for row in every) for n in range(len(head))]
    lines = [
        _GAP.join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in every
    ]
    return "\n".join(cut(line, width) for line in lines)


def cut(line: str, width: int | None) -> str:
    """The line, ended by three dots where it is too long."""
    if width is None or len(line) <= width:
        return line
    return f"{line[: max(0, width - 3)]}..."


def terminal_width() -> int | None:
    """How wide a person's screen is; None where nobody looks and nothing needs cutting."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def clock(at: datetime) -> str:
    """To the second, in UTC."""
    return at.strftime("%Y-%m-%d %H:%M:%S")


def length(span: timedelta) -> str:
    """How long, to two figures that matter: `42s`, `12m`, `3h20m`, `2d4h`."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if minutes < 120:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"


def due(at: datetime, now: datetime) -> str:
    """`in 12m`, or `12m late`."""
    return f"in {length(at - now)}" if at >= now else f"{length(now - at)} late"
