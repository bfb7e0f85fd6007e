"""What a person who knows nothing of gpumend reads of an incident: its card."""

import pytest

from fleet.decision import Ask, HandOff, Wait
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import QUEUED
from fleet.step import Step
from policies.carried import Ignored
from tests.incidents.scenario import build
from tests.incidents.virtual import Script, World, play
from workflows.card import answers, card_of, in_short

ASKING = "policy asking\nfault gpu:1 gpu-lost\nat 20m deny ada the job ends tomorrow"


def played(script: str) -> World:
    world = play(build(script))
    assert world.incident
    return world


def card(world: World, kind: type) -> str:
    assert world.incident
    return card_of(world.incident, next(e for e in world.decisions if isinstance(e, kind)))


def test_a_question_shows_what_is_asked_until_when_and_the_commands_that_answer_it():
    world = played(ASKING)
    ask = next(each for each in world.decisions if isinstance(each, Ask))
    text = card(world, Ask)
    for words in (
        "**question**: reboot n1, for gpu-lost on gpu:1 (xid:95)?",
        "by 2026-11-29 16:00:12 UTC, then: deny",
        f'`gpumend approve n1 --ask {ask.id} --reason "WHY"`',
        f'`gpumend deny n1 --ask {ask.id} --reason "WHY"`',
        f'"ask": "{ask.id}"}}`',
        "gpu-lost on gpu:1 (xid:95) since",
        "reboot, once a person says yes",
    ):
        assert words in text


def test_who_answered_what_is_on_the_card_with_the_evidence_that_was_shown():
    world = played(ASKING)
    ask = next(each for each in world.decisions if isinstance(each, Ask))
    text = card(world, HandOff)
    assert f"deny ({ask.id}" in text
    assert "by ada: the job ends tomorrow" in text
    assert '`gpumend resume n1 --reason "WHY"`: look again, and go on' in text


def test_the_same_facts_show_the_same_evidence():
    asks = played("policy asking\nfault gpu:1 gpu-lost\nat 1h report").decisions
    shown = {(each.id, each.evidence) for each in asks if isinstance(each, Ask)}
    assert len(shown) == 1


def test_a_wait_says_what_comes_next():
    text = card(played("policy short\nfault nvlink:3/1 nvlink-error\nat 1h cancel ada no"), Wait)
    assert "**waiting** (tolerate) until" in text
    assert "- reset-gpu\n- if that does not help: reboot\n- if nothing helps: hand-off" in text


def test_the_timeline_names_what_a_wait_waits_for():
    world = played("policy short\nfault nvlink:3/1 nvlink-error\nat 1h cancel ada no")
    wait = next(each for each in world.decisions if isinstance(each, Wait))
    said = (
        "waiting (tolerate): jobs may stay 2m after the first sight, until 2026-11-29 12:02:00 UTC"
    )
    assert in_short(wait) == said


def test_who_waits_for_a_lease_reads_what_is_used_up():
    world = build("policy short\nfault gpu:1 gpu-lost\nat 90s granted\nreboot heals")
    full = Outcome(OutcomeKind.TRANSIENT, QUEUED, "rack r7: 2 of 2 used")
    world.scripts[Step.LEASE].append(Script(full))
    play(world)
    waits = [in_short(each) for each in world.decisions if isinstance(each, Wait)]
    assert waits[0].startswith("waiting (lease): the ask waits for a grant: rack r7: 2 of 2 used, ")


def test_a_dry_run_says_so_first():
    world = played("policy rehearsed\ndry\nfault gpu:1 gpu-lost\nat 2m clear")
    assert card(world, Wait).startswith("### DRY RUN, nothing is touched: n1 (c1)")


@pytest.mark.parametrize(("what", "verbs"), [("pause ada why", 3), ("hold removed", 2)])
def test_a_pause_and_a_hold_that_was_taken_away_say_how_to_go_on(what, verbs):
    world = played(f"policy short\nfault nvlink:3/1 nvlink-error\nat 1m {what}")
    ask = next(each for each in world.decisions if isinstance(each, Ask))
    assert world.incident
    said = answers(world.incident, ask)
    assert len(said) == verbs
    assert said[0] == '`gpumend resume n1 --reason "WHY"`'


def test_the_fullest_card_fits_into_what_the_server_takes():
    world = played(ASKING)
    assert world.incident
    ignored = [Ignored("x" * 300, "y" * 300, world.now)] * 8
    assert len(card_of(world.incident, world.decisions[-1], ignored).encode()) < 20_000
