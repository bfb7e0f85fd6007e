"""What is said of the checks is what they are."""

from pathlib import Path

from fleet.check import Check
from probes import checks
from probes.checks.about import ABOUT, LEFT_OUT, as_page

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"


def test_every_check_says_what_it_reads_and_why():
    assert set(ABOUT) == set(Check) == {*checks.PASSIVE, *checks.ACTIVE, Check.KERNEL_LOG}
    for about in ABOUT.values():
        assert about.asks and about.reads and about.why and about.faults  # noqa: PT018
    assert all(LEFT_OUT.values())


def test_the_page_of_checks_is_fresh():
    remedy = "run: gpumend probe list --page > docs/checks.md"
    assert PAGE.read_text() == as_page(), remedy
