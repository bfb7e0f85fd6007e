"""A round of checks: a slow one keeps no other back, and one that never ends is not begun twice."""

import fcntl
import os
import threading

import pytest

from fleet.part import HOST
from probes.agent import rounds
from probes.agent.rounds import Rounds
from probes.checks.subject import ok


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(rounds, "PATIENCE", 0.02)
    monkeypatch.setattr(rounds, "GLANCE", 0.01)
    monkeypatch.setattr(rounds, "LIMIT", 0.1)


class Stuck:
    """A check that ends when it is let go."""

    def __init__(self, name):
        self.name, self.go, self.runs = name, threading.Event(), 0

    def __call__(self):
        self.runs += 1
        assert self.go.wait(10)
        return (ok(self.name, HOST),)


def quick_check(name):
    return lambda: (ok(name, HOST),)


def said(told):
    return [(each.check, each.findings[0].code or each.findings[0].verdict.value) for each in told]


def test_checks_that_are_well_run_in_turn():
    running: list[str] = []

    def check(name):
        def run():
            assert not running
            running.append(name)
            running.remove(name)
            return (ok(name, HOST),)

        return run

    told: list[rounds.Timed] = []
    Rounds().run({name: check(name) for name in "abc"}, told.append)
    assert said(told) == [("a", "ok"), ("b", "ok"), ("c", "ok")]


def test_a_slow_check_is_told_when_it_ends_and_the_others_before(monkeypatch):
    monkeypatch.setattr(rounds, "LIMIT", 10.0)
    slow = Stuck("slow")
    told: list[rounds.Timed] = []

    def tell(timed):
        told.append(timed)
        if timed.check == "c":
            slow.go.set()

    Rounds().run({"a": quick_check("a"), "slow": slow, "c": quick_check("c")}, tell)
    assert said(told) == [("a", "ok"), ("c", "ok"), ("slow", "ok")]


def test_a_check_that_does_not_end_is_unknown_and_is_not_begun_again_while_it_runs():
    stuck, runner = Stuck("stuck"), Rounds()
    told: list[rounds.Timed] = []
    checks = {"stuck": stuck, "b": quick_check("b")}
    for _ in range(3):
        runner.run(checks, told.append)
    assert said(told)[:2] == [("b", "ok"), ("stuck", "check:overdue")]
    assert (stuck.runs, said(told).count(("stuck", "check:overdue"))) == (1, 3)
    stuck.go.set()
    while ("stuck", "ok") not in said(told):
        runner.run(checks, told.append)
    assert stuck.runs == 2


def broken():
    raise ValueError("a mistake of ours")


def test_a_check_that_raises_is_unknown_and_the_next_ones_run():
    told: list[rounds.Timed] = []
    Rounds().run({"a": broken, "b": quick_check("b")}, told.append)
    assert said(told) == [("a", "check:broken"), ("b", "ok")]
    assert "ValueError: a mistake of ours" in told[0].findings[0].evidence


def test_a_check_that_no_thread_could_be_had_for_is_unknown(monkeypatch):
    def none(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    told: list[rounds.Timed] = []
    Rounds().run({"a": quick_check("a")}, told.append)
    assert said(told) == [("a", "check:broken")]


def test_what_still_runs_after_its_round_keeps_the_lock_and_then_lets_go(tmp_path):
    stuck, runner = Stuck("stuck"), Rounds()
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_SH)
    runner.run({"stuck": stuck}, lambda _: None, (lock,))
    os.close(lock)
    with (tmp_path / "lock").open() as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stuck.go.set()
        runner.run({}, lambda _: None)
        while runner._overdue:
            runner.run({}, lambda _: None)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
