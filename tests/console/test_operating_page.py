"""The page for operators shows commands that are taken as written, and pictures that are there."""

import re
import shlex
from pathlib import Path

import pytest

from console.main import prepare

PAGE = Path(__file__).parents[2] / "docs/operating.md"
TEXT = PAGE.read_text()
BLOCKS = [line for block in re.findall(r"```\n(.*?)```", TEXT, re.S) for line in block.splitlines()]
LINES = sorted({*re.findall(r"`(gpumend [^`]*)`", TEXT), *BLOCKS})
STANDS_FOR = {"N": "n1", "NODE": "n1", "...": "why"}
LARGEST_PICTURE = 200_000


def words_of(line: str) -> list[str]:
    words = shlex.split(line.split("#")[0])
    return [STANDS_FOR.get(each, each) for each in words]


@pytest.mark.parametrize("line", LINES)
def test_a_command_on_the_page_is_taken_as_it_is_written(line, capsys):
    _, name, *rest = words_of(line)
    _, parser = prepare(name)
    try:
        parser.parse_args(rest)
    except SystemExit:  # a command that is only named, without what it needs
        said = capsys.readouterr().err
        assert "the following arguments are required" in said, said


def test_the_page_shows_every_verb():
    for verb in ("approve", "deny", "pause", "resume", "skip", "release", "cancel", "open"):
        assert f"gpumend {verb} " in TEXT


def test_the_pictures_are_small():
    pictures = [PAGE.parent / name for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", TEXT)]
    assert len(pictures) == 3
    assert all(0 < each.stat().st_size < LARGEST_PICTURE for each in pictures)
