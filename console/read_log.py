"""`gpumend read-log`: what a kernel log says, a reading a line.

Only options and printing: reading is in `probes.kernel_log`. A file is one boot.
"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from console import exits
from probes.kernel_log import lines
from probes.kernel_log.collapse import Collapsed, Tally, collapse
from probes.kernel_log.read import Answer, Reader
from probes.kernel_log.reading import Reading, mapping, plain


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", help="the log of one boot, or - for standard input")
    parser.add_argument("--json", action="store_true", help="one JSON value a line of output")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--all", action="store_true", help="null for every line that says nothing")
    shape.add_argument("--collapse", action="store_true", help="one reading a distinct fault")


def run(arguments: argparse.Namespace) -> int:
    """Read the log and print its readings."""
    with contextlib.ExitStack() as stack:
        try:
            log = _open(arguments.file, stack)
            _print(log, arguments)
        except BrokenPipeError:  # who read our output had enough: nobody's fault
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            print(f"gpumend read-log: {arguments.file}: {error.strerror}", file=sys.stderr)
            return exits.USAGE
    return exits.OK


def _open(name: str, stack: contextlib.ExitStack) -> BinaryIO:
    return sys.stdin.buffer if name == "-" else stack.enter_context(open(name, "rb"))


@dataclass(slots=True)
class _Output:
    """What is ready to be printed."""

    texts: list[str] = field(default_factory=list)

    def flush(self) -> None:
        """Print it."""
        sys.stdout.buffer.write("".join(self.texts).encode())
        sys.stdout.buffer.flush()
        self.texts.clear()


@dataclass(slots=True)
class _Flushing:
    """Prints what is ready before it waits for more input, so that a live log is read live."""

    log: BinaryIO
    output: _Output

    def read1(self, size: int, /) -> bytes:
        self.output.flush()
        chunk: bytes = self.log.read1(size)  # type: ignore[attr-defined]
        return chunk


def _print(log: BinaryIO, arguments: argparse.Namespace) -> None:
    output = _Output()
    answers = Reader().answers(lines.blocks(_Flushing(log, output)))
    if arguments.collapse:
        output.texts.extend(_collapsed(collapse(answers), arguments.json))
    elif arguments.all:
        output.texts.extend(_all(answers, arguments.json))
    else:
        for text in _readings(answers, arguments.json):
            output.texts.append(text)
    output.flush()


def _readings(answers: Iterable[tuple[int, Answer]], as_json: bool) -> Iterator[str]:
    start, rest = ('{"line": ', _json_rest) if as_json else ("", _plain_rest)
    for number, answer in answers:
        if answer.readings:
            kept = answer.kept
            if kept is None:
                kept = answer.kept = [rest(reading) for reading in answer.readings]
            for text in kept:
                yield f"{start}{number}{text}"


def _all(answers: Iterable[tuple[int, Answer]], as_json: bool) -> Iterator[str]:
    """As `_readings`, and null for a line without any. A long line comes in several answers."""
    last, silent = 0, False
    for number, answer in answers:
        if number != last:
            if silent:
                yield _nothing(last, as_json)
            last, silent = number, True
        if answer.readings:
            silent = False
            yield from _readings([(number, answer)], as_json)
    if silent:
        yield _nothing(last, as_json)


def _nothing(number: int, as_json: bool) -> str:
    return "null\n" if as_json else f"{number}\tnull\n"


def _collapsed(collapsed: Collapsed, as_json: bool) -> Iterator[str]:
    if collapsed.unlisted:
        print(
            f"gpumend read-log: {collapsed.unlisted} more readings, of faults not listed: "
            "the log names more distinct faults than one machine has",
            file=sys.stderr,
        )
    for tally in collapsed.tallies:
        yield _tally_json(tally) if as_json else _tally_plain(tally)


def _tally_json(tally: Tally) -> str:
    counts = {"count": tally.count, "first": tally.first, "last": tally.last}
    return json.dumps({"line": tally.first, **mapping(tally.reading), **counts}) + "\n"


def _tally_plain(tally: Tally) -> str:
    counts = f"count={tally.count} first={tally.first} last={tally.last}"
    return f"{tally.first}\t{plain(tally.reading)} {counts}\n"


def _json_rest(reading: Reading) -> str:
    return ", " + json.dumps(mapping(reading))[1:] + "\n"


def _plain_rest(reading: Reading) -> str:
    return "\t" + plain(reading) + "\n"
