"""Every promise of the observer with a run that keeps it and one that breaks it."""

from datetime import timedelta

import pytest

from simulator.observer.incidents import incidents, unended
from simulator.observer.promise import Promises, judge
from simulator.observer.rules import ALL
from simulator.observer.summary import summarize
from simulator.observer.transcript import read_line, read_lines
from tests.simulator.transcripts import AGENT, KUBELET, WORKER, Log, repaired

PROMISES = Promises(budget={"cluster": 1, "rack": 1}, labels={"rack": "rack"})


def broken(log: Log) -> set[str]:
    return {violation.rule for violation in judge(log.writes, PROMISES, ALL.values())}


def test_a_run_as_it_should_be_breaks_no_promise():
    found = summarize(repaired().writes, PROMISES)
    assert found.violations == ()
    assert found.ended["repaired"] == 1
    assert found.max_disrupted == {"cluster": 1, "rack": 1}
    assert found.incidents[0].steps == ("reset-gpu",)


def drained_node():
    return Log().node().node("n2").condition().hold()


BREAKS = {
    "held": lambda: Log().node().pod("w1").condition().evict("w1"),
    "unknown": lambda: (
        Log().node().pod("w1").condition(status="Unknown").hold("monitor-silent").evict("w1")
    ),
    "evidence": lambda: Log().node().hold("application"),
    "uid": lambda: drained_node().pod("w1").evict("w1", uid=""),
    "left-alone": lambda: drained_node().pod("d1", owner="DaemonSet").evict("d1"),
    "drained": lambda: drained_node().pod("w1").step("reboot", "i1-1-reboot"),
    "release": lambda: drained_node().step("reset-gpu", "i1-1-reset-gpu").release(),
    "taints": lambda: drained_node().change(unschedulable=True),
    "twice": lambda: drained_node().step("verify", "o").step("verify", "o"),
    "budget": lambda: (
        drained_node()
        .step("reboot", "a")
        .condition(name="n2")
        .hold(name="n2", incident="i2")
        .step("reboot", "b", node="n2")
    ),
}


OTHER_BREAKS = [
    ("uid", lambda: drained_node().pod("w1").evict("w1", uid="another")),
    ("left-alone", lambda: drained_node().pod("w1").delete("w1")),
    ("left-alone", lambda: drained_node().pod("w1").delete("", verb="deletecollection")),
    ("grace", lambda: drained_node().pod("w1").evict("w1", gracePeriodSeconds=0)),
]


@pytest.mark.parametrize(("rule", "run"), [*BREAKS.items(), *OTHER_BREAKS])
def test_a_broken_promise_is_found_under_its_own_name_alone(rule, run):
    assert broken(run()) == {rule}


def test_every_rule_has_a_run_that_breaks_it():
    assert {*BREAKS, *dict(OTHER_BREAKS), "agent"} == set(ALL)


@pytest.mark.parametrize(
    ("request_body", "name", "subresource"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "n1", "status"),
        ({"status": {"conditions": [{"type": "gpumend.io/GPU"}]}}, "n2", "status"),
        ({"metadata": {"labels": {"a": "b"}}}, "n1", "status"),
        ({"spec": {"unschedulable": True}}, "n1", ""),
    ],
)
def test_an_agent_that_writes_what_is_not_its_own_is_found(request_body, name, subresource):
    log = Log().node().node("n2")
    extra = {"authentication.kubernetes.io/node-name": ["n1"]}
    user = AGENT
    node = log.nodes[name]
    log.log(user, "patch", "nodes", name, request_body, node, subresource=subresource, extra=extra)
    assert broken(log) == {"agent"}


def test_a_broken_sensor_is_no_accusation():
    log = Log().node().pod("w1").condition("monitor-silent", kind="gpumend.io/Probes")
    assert broken(log.hold("monitor-silent").evict("w1")) == {"unknown"}


def test_a_release_without_any_step_needs_no_verify_but_no_standing_fault():
    well = drained_node().condition(status="True").release()
    assert broken(well) == set()
    assert broken(drained_node().release()) == {"release"}


def test_a_verify_from_before_the_last_step_proves_nothing():
    log = drained_node().step("reset-gpu", "a").step("verify", "b").step("reboot", "c")
    assert broken(log.release()) == {"release"}


def test_a_verify_that_failed_proves_nothing():
    log = drained_node().step("reset-gpu", "a").step("verify", "b", result="failed")
    assert broken(log.release()) == {"release"}


def test_a_terminating_pod_still_counts_as_there_and_a_deleted_one_does_not():
    log = drained_node().pod("w1").evict("w1")
    assert broken(log.step("reset-gpu", "a")) == {"drained"}
    again = drained_node().pod("w1").evict("w1").gone("w1")
    assert broken(again.step("reset-gpu", "a")) == set()


def test_a_second_eviction_of_a_pod_is_found_and_a_refused_one_is_not():
    log = drained_node().pod("w1").evict("w1", code=429).evict("w1", code=429)
    assert broken(log) == set()
    assert broken(log.evict("w1").evict("w1")) == {"twice"}


def test_a_hold_that_comes_back_after_a_release_is_a_relapse_and_not_done_twice():
    log = drained_node().condition(status="True").release().condition()
    log.change(hold="uncontained-memory", mark={"id": "i1", "state": "owned"})
    assert broken(log) == set()


def test_taints_of_others_may_be_changed_by_others():
    foreign = [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
    log = Log().node().change(user=KUBELET, taints=foreign)
    assert broken(log) == set()
    assert broken(log.change(user=WORKER, taints=[])) == {"taints"}


def test_an_incident_without_end_is_found():
    assert [each.rule for each in unended(drained_node().writes)] == ["ended"]


ENDINGS = {
    "repaired": lambda: repaired(),
    "recovered": lambda: drained_node().condition(status="True").release().close(),
    "cancelled": lambda: drained_node().change(user="person:ada", hold="", mark=None),
    "handed_off": lambda: drained_node().hand_off(),
}


@pytest.mark.parametrize("end", ENDINGS)
def test_an_end_is_told_by_what_was_done(end):
    writes = ENDINGS[end]().writes
    assert [each.end for each in incidents(writes)] == [end]
    assert unended(writes) == []


def test_availability_counts_the_time_without_hold_and_ready():
    log = Log().node("n1").node("n2")
    log.now += timedelta(seconds=49)
    log.condition().hold()
    log.now += timedelta(seconds=48)
    log.condition(name="n2", status="True")
    shares = summarize(log.writes, PROMISES).node_availability
    assert shares == pytest.approx((51 + 99) / 200, abs=0.01)


def test_lines_that_are_cut_or_no_writes_are_passed_over():
    assert read_line('{"stage": "Response') is None
    assert read_line('{"stage": "ResponseComplete", "verb": "get"}') is None


def test_two_lines_in_the_wrong_order_are_put_right_by_their_versions():
    log = repaired()
    swapped = [*log.lines[:4], log.lines[5], log.lines[4], *log.lines[6:]]
    assert read_lines(swapped) == log.writes
