"""`gpumend read-log`: what a kernel log says, a reading a line.

Only options and printing: reading is in `probes.kernel_log`. A file is one boot.
"""

import argparse
import contextlib
import gc
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from console import exits
from probes.kernel_log import lines
from probes.kernel_log.answer import Answer
from probes.kernel_log.collapse import Collapsed, Tally, collapse
from probes.kernel_log.read import Reader
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
        except BrokenPipeError:
            raise
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
    gc.disable()  # nothing here makes a cycle, and looking for them costs a fifth of the time
    output, reader = _Output(), Reader()
    blocks = lines.blocks(_Flushing(log, output))
    form = JSON if arguments.json else PLAIN
    if arguments.collapse:
        output.texts.extend(_collapsed(collapse(reader, blocks), arguments.json))
    elif arguments.all:
        _print_all(reader, blocks, form, output)
    else:
        for block in blocks:
            output.texts.extend(_readings(reader.answers(block), block.first, form))
    output.flush()


@dataclass(frozen=True, slots=True)
class _Form:
    """How a reading is printed: what stands before its line number, what after, and a null."""

    start: str
    rest: Callable[[Reading], str]
    nothing: str


PLAIN = _Form("", lambda reading: f"\t{plain(reading)}\n", "{line}\tnull\n")
JSON = _Form('{"line": ', lambda reading: f", {json.dumps(mapping(reading))[1:]}\n", "null\n")


def _readings(answers: Iterable[Answer], first: int, form: _Form) -> list[str]:
    """What is printed of lines in a row, of which `first` is the first's number."""
    start = form.start
    return [
        f"{start}{number}{text}"
        for number, answer in enumerate(answers, first)
        for text in (answer.kept or _rests(answer, form))
    ]


def _rests(answer: Answer, form: _Form) -> list[str]:
    rests = [form.rest(reading) for reading in answer.readings]
    answer.kept = rests
    return rests


def _print_all(reader: Reader, blocks: Iterable[lines.Block], form: _Form, output: _Output) -> None:
    """As `_readings`, and null for a line without any. A long line is several blocks."""
    last, silent = 0, False
    for block in blocks:
        for number, answer in enumerate(reader.answers(block), block.first):
            if number != last and silent:
                output.texts.append(form.nothing.format(line=last))
            silent = not answer.readings and (silent or number != last)
            last = number
            output.texts.extend(_readings([answer], number, form))
    if silent:
        output.texts.append(form.nothing.format(line=last))


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
