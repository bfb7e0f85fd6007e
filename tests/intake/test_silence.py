"""When an agent counts as silent."""

from datetime import timedelta
from typing import Any

from intake.settings import Settings
from intake.silence import Agents, Heartbeat, read_heartbeat
from tests.intake.cases import NOW, later

LIMIT = Settings().agent_silent_after
GRACE = Settings().boot_grace


def agents(renewal=NOW, boot=NOW):
    known = Agents(Settings())
    known.booted("n1", "b1", boot)
    if renewal:
        known.renewed("agent-n1", renewal, renewal)
    return known


def test_an_agent_is_silent_after_the_limit_and_not_before():
    known = agents(later(hours=1))
    almost = later(hours=1) + LIMIT - timedelta(seconds=1)
    assert not known.silent("n1", almost)
    assert known.silent("n1", almost + timedelta(seconds=1))


def test_an_agent_that_was_never_heard_of_is_silent_only_after_the_grace_of_a_boot():
    known = agents(renewal=None)
    assert not known.silent("n1", NOW + GRACE - timedelta(seconds=1))
    assert known.silent("n1", NOW + GRACE)


def test_a_new_boot_begins_a_new_grace():
    known = agents(NOW)
    known.booted("n1", "b1", later(hours=1))
    assert known.silent("n1", later(hours=1))
    known.booted("n1", "b2", later(hours=1))
    assert not known.silent("n1", later(hours=1))


def test_a_wrong_clock_of_the_agent_does_not_make_it_silent_or_alive():
    ahead = Agents(Settings())
    ahead.booted("n1", "b1", NOW)
    ahead.renewed("agent-n1", later(days=1), NOW)
    assert ahead.silent("n1", NOW + GRACE + LIMIT)
    behind = Agents(Settings())
    behind.booted("n1", "b1", NOW)
    behind.renewed("agent-n1", later(days=-1), NOW)
    behind.renewed("agent-n1", later(days=-1, minutes=2), later(hours=1))
    assert not behind.silent("n1", later(hours=1))


def test_a_lease_that_is_gone_is_no_sign_of_life():
    known = agents(later(hours=1))
    known.lease_gone("agent-n1")
    assert known.silent("n1", later(hours=1))


def test_nothing_is_said_of_a_node_that_was_not_seen():
    assert not Agents(Settings()).silent("n9", NOW)


def test_a_lease_says_when_it_was_renewed_and_which_agent_it_is():
    silent: dict[str, Any] = {"metadata": {}, "spec": {}}
    assert read_heartbeat(silent) == Heartbeat(None)
    notes = {"annotations": {"gpumend.io/agent-version": "1.2.0"}}
    alive = {"metadata": notes, "spec": {"renewTime": "2026-11-29T12:00:00.000000Z"}}
    assert read_heartbeat(alive) == Heartbeat(NOW, "1.2.0")
