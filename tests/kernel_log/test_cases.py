"""Every line of the corpus (`cases.txt`: line, tab, expected reading) is read as stated."""

from pathlib import Path

import pytest

from probes.kernel_log.read import Reader, read
from probes.kernel_log.reading import plain

CASES = [
    tuple(line.split("\t"))
    for line in Path(__file__).with_name("cases.txt").read_text(encoding="utf-8").splitlines()
]
NOTHING = ("kind=noise", "kind=other")


def wanted(expected: str) -> list[str]:
    return [] if expected.startswith(NOTHING) else [expected]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_line_of_the_corpus_is_read_as_stated(text, expected):
    assert [plain(reading) for reading in read(text)] == wanted(expected)


def test_the_corpus_read_as_one_boot_says_the_same_line_by_line():
    reader = Reader()
    for number, (text, expected) in enumerate(CASES, 1):
        readings = reader.read(text)
        assert [plain(reading) for reading in readings] == wanted(expected)
        assert all(reading.line == number for reading in readings)
