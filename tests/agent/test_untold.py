"""A check that cannot tell for long takes the True out of its condition, and nothing else."""

import pytest

from fleet.check import Check
from fleet.fault import Advice, FaultName
from fleet.finding import Finding, Verdict
from fleet.part import HOST
from probes.agent.untold import BY_NATURE, GRACE, SHOWS_IN, Untold, proves
from probes.checks import PASSIVE

MUTE = Finding(Check.NVLINK, HOST, Verdict.UNKNOWN, code="nvml:999")
WELL = Finding(Check.NVLINK, HOST, Verdict.OK)
SICK = Finding(Check.NVLINK, HOST, Verdict.FAULT, FaultName.NVLINK_ERROR, "x", Advice.HOLD)


def after(*rounds: Finding) -> dict[str, str]:
    untold = Untold()
    for finding in rounds:
        untold.round((finding, Finding(Check.HOST, HOST, Verdict.OK)))
    return dict(untold.conditions())


@pytest.mark.parametrize("rounds", range(GRACE))
def test_a_moment_of_silence_changes_nothing(rounds):
    assert after(*[MUTE] * rounds) == {}


def test_silence_that_lasts_is_said_in_the_condition_of_its_check_alone():
    assert after(*[MUTE] * GRACE) == {"gpumend.io/Fabric": "Nvml999"}


@pytest.mark.parametrize("answer", [WELL, SICK])
def test_an_answer_of_either_kind_ends_the_silence(answer):
    assert after(*[MUTE] * GRACE, answer) == {}
    assert after(*[MUTE] * GRACE, answer, MUTE) == {}


@pytest.mark.parametrize("code", sorted(BY_NATURE))
def test_what_nobody_can_tell_here_is_no_doubt(code):
    said = Finding(Check.ADAPTERS, HOST, Verdict.UNKNOWN, code=code)
    assert after(*[said] * GRACE) == {}
    assert proves(said)
    assert not proves(MUTE)
    assert not proves(SICK)


def test_every_check_of_the_agent_shows_in_a_condition():
    assert set(SHOWS_IN) == set(PASSIVE)
