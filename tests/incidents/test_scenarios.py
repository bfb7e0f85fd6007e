"""Every scenario file, played in virtual time through `drive` and `decide`.

To see what a change does to the transcripts, write them anew with GPUMEND_REWRITE=1 and read the
difference.
"""

import os

import pytest

from tests.incidents.scenario import FOLDER, run

SCENARIOS = sorted(FOLDER.glob("*.txt"))
RULE = "---\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_goes_as_its_transcript_says(path):
    script, _, expected = path.read_text().partition(RULE)
    transcript = "".join(f"{line}\n" for line in run(script))
    if os.environ.get("GPUMEND_REWRITE"):
        path.write_text(script + RULE + transcript)
        expected = transcript
    assert transcript == expected


def test_there_are_scenarios():
    assert len(SCENARIOS) > 20
