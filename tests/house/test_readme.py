"""The pages for users say what is true: pictures, commands and links are held to the code."""

import re
from pathlib import Path

import pytest

from console.main import COMMANDS
from fleet.step import Step

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
SERVING = {Step.RECALL, Step.GIVE_BACK, Step.CLOSE, Step.END_JOB, Step.LAUNCH, Step.IDLE}
"""Steps that no picture for users shows."""


def test_the_picture_shows_every_step_of_the_ladder():
    picture = README.split("```")[1]
    assert [step for step in Step if step not in SERVING and step.value not in picture] == []


def test_two_commands_are_all_that_a_fresh_machine_needs():
    block = re.search(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert block
    commands = [line.split("#")[0].strip() for line in block[1].splitlines()]
    assert commands == ["pip install uv && uv run gpumend demo", "uv run poe test"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_on_a_page_exists(page):
    named = re.findall(r"`(?:uv run )?gpumend ([a-z-]+)", page.read_text())
    assert [name for name in named if name not in COMMANDS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_on_a_page_leads_somewhere(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
