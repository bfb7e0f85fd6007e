"""Every promise of the observer with a run that keeps it and one that breaks it."""

from datetime import timedelta

import pytest

from simulator.observer.incidents import incidents, unended
from simulator.observer.promise import Promises, judge
from simulator.observer.rules import ALL
from simulator.observer.summary import summarize
from simulator.observer.transcript import read_line, read_lines
from tests.simulator.transcripts import AGENT, KUBELET, WATCHER, WORKER, Log, repaired

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
    return Log().node().node("n2").condition().hold().seen_sick()


def replaced():
    """A machine that is given back on a person's word, with its Node."""
    return drained_node().asks().agrees().machine("terminate").gone_node()


def new_node():
    return Log().node().unproven()


def wrong(log):
    """The agent of n1 says that gpu:3 computes wrong."""
    return log.condition("wrong-results", kind="gpumend.io/GPU")


COMPUTED = {"check": "compute", "part": "gpu:3", "verdict": "fault", "fault": "wrong-results"}
COUNTED = {**COMPUTED, "check": "memory"}
ELSEWHERE = {**COMPUTED, "part": "gpu:4"}


BREAKS = {
    "proof": lambda: new_node().unproven(None, user=WORKER),
    "computed": lambda: wrong(Log().node()),
    "held": lambda: Log().node().pod("w1").condition().seen_sick().evict("w1"),
    "unknown": lambda: (
        Log().node().pod("w1").condition(status="Unknown").hold("monitor-silent").seen_sick()
    ).evict("w1"),
    "confirmed": lambda: Log().node().pod("w1").condition().hold().evict("w1"),
    "approved": lambda: drained_node().machine("terminate"),
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
        .seen_sick("n2")
        .step("reboot", "b", node="n2")
    ),
}


OTHER_BREAKS = [
    ("proof", lambda: new_node().pod("w1")),
    ("proof", lambda: new_node().proves("failed").unproven(None, user=WORKER)),
    ("proof", lambda: new_node().step("verify", "i1-1-verify").unproven(None, user=WORKER)),
    ("proof", lambda: new_node().unproven("sweep", user=WORKER).unproven(None, user=WORKER)),
    ("proof", lambda: Log().node().unproven("found", user=WORKER).unproven(None, user=WORKER)),
    ("proof", lambda: new_node().proves().unproven(boot="b2").unproven(None, "n1", WORKER, "b2")),
    ("proof", lambda: Log().node().proves().unproven().unproven(None, user=WORKER)),
    ("computed", lambda: wrong(new_node().proves("failed", found=[COUNTED]))),
    ("computed", lambda: wrong(new_node().proves("failed", found=[ELSEWHERE]))),
    ("computed", lambda: wrong(new_node().proves("done", found=[COMPUTED]))),
    ("uid", lambda: drained_node().pod("w1").evict("w1", uid="another")),
    ("left-alone", lambda: drained_node().pod("w1").delete("w1")),
    ("left-alone", lambda: drained_node().pod("w1").delete("", verb="deletecollection")),
    ("grace", lambda: drained_node().pod("w1").evict("w1", gracePeriodSeconds=0)),
    ("approved", lambda: drained_node().asks().machine("terminate")),
    ("approved", lambda: drained_node().asks().agrees("n2").machine("terminate")),
    ("drained", lambda: drained_node().pod("w1").asks().agrees().machine("terminate")),
    ("twice", lambda: drained_node().machine("restart").machine("restart")),
    ("left-alone", lambda: drained_node().pod("w1").agrees("n2").delete("w1")),
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
    assert broken(log.hold("monitor-silent").seen_sick().evict("w1")) == {"unknown"}


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


KEPT = {
    "proven": lambda: new_node().proves().unproven(None, user=WORKER).pod("w1"),
    "on a person's word": lambda: new_node().unproven(None, user="person:ada").pod("w1"),
    "swept in vain": lambda: (
        Log().node().unproven("sweep", user=WORKER).pod("w1").unproven(None, user=WORKER)
    ),
    "found, repaired, proven": lambda: (
        (
            Log()
            .node()
            .unproven("sweep", user=WORKER)
            .proves("failed")
            .unproven("found", user=WORKER)
        )
        .proves(operation="prove-2")
        .unproven(None, user=WORKER)
    ),
    "helpers run": lambda: new_node().pod("d1", owner="DaemonSet").proves("failed"),
    "gone": lambda: new_node().gone_node(),
    "computed": lambda: wrong(new_node().proves("failed", found=[COMPUTED])),
}


@pytest.mark.parametrize("run", KEPT.values(), ids=KEPT)
def test_a_node_is_given_to_work_after_its_proof_and_called_wrong_after_computing(run):
    assert broken(run()) == set()


def test_an_agent_may_tell_what_a_step_found_before_the_end_of_the_step_is_known():
    *rest, ended, told = wrong(new_node().proves("failed", found=[COMPUTED])).writes
    assert list(ALL["computed"]([*rest, told, ended], PROMISES)) == []
    assert list(ALL["computed"]([*rest, told], PROMISES)) != []


def test_an_incident_without_end_is_found():
    assert [each.rule for each in unended(drained_node().writes)] == ["ended"]


def test_a_pod_that_a_person_says_may_be_forced_may_be_deleted():
    assert broken(drained_node().pod("w1").agrees().delete("w1")) == set()


def test_a_silent_node_needs_neither_an_empty_machine_nor_a_check_on_it():
    log = Log().node().pod("w1").not_ready().hold("host-unreachable")
    assert broken(log.machine("restart")) == set()
    assert [each.steps for each in incidents(log.writes)] == [("reboot",)]


def test_pods_of_a_machine_that_was_switched_off_may_be_removed_at_once():
    log = drained_node().pod("w1").not_ready().machine("stop").agrees()
    assert broken(log.evict("w1", gracePeriodSeconds=0)) == set()


def test_a_node_is_held_for_what_a_monitor_of_others_says_if_the_policy_knows_it():
    said = Log().node().condition("x", kind="Foreign", user="m").hold("gpu-lost")
    assert broken(said) == {"evidence"}
    known = Promises(budget={"cluster": 1}, foreign=("Foreign",))
    assert judge(said.writes, known, ALL.values()) == []


def test_a_job_that_loses_two_nodes_at_once_is_found():
    promises = Promises(budget={"job": 1}, job="job")
    log = (
        drained_node().pod("w1", labels={"job": "llm"}).pod("w2", node="n2", labels={"job": "llm"})
    )
    log.evict("w1").gone("w1").condition(name="n2").hold(name="n2", incident="i2").seen_sick("n2")
    assert [each.rule for each in judge(log.writes, promises, ALL.values())] == []
    found = judge(log.evict("w2").writes, promises, ALL.values())
    assert [each.rule for each in found] == ["budget"]


def test_a_node_that_was_handed_off_counts_on_in_the_scopes_that_the_policy_names():
    log = drained_node().step("reset-gpu", "a").hand_off()
    log.condition(name="n2").hold(name="n2", incident="i2").seen_sick("n2")
    log.step("reboot", "b", node="n2")
    racks = Promises(budget={"rack": 1}, labels={"rack": "rack"})
    for each in log.nodes.values():
        each["metadata"]["labels"]["rack"] = "a"
    assert judge(log.writes, racks, ALL.values()) == []
    assert {each.rule for each in judge(log.writes, PROMISES, ALL.values())} == {"budget"}


def test_a_machine_that_comes_back_as_a_new_node_goes_on_with_its_incident():
    log = drained_node().step("reboot", "i1-1-reboot").gone_node().node()
    assert [each.end for each in incidents(drained_node().gone_node().writes)] == ["superseded"]
    log.change(hold="uncontained-memory", mark={"id": "i2", "state": "pending"}, user=WATCHER)
    log.step("verify", "i1-2-verify").change(hold="", mark={"id": "i2", "state": "probation"})
    found = incidents(log.close().writes)
    assert [(each.end, each.steps) for each in found] == [("repaired", ("reboot",))]
    assert broken(log) == set()


def test_a_fresh_mark_that_the_incident_takes_over_ends_nothing():
    log = drained_node().step("reboot", "i1-1-reboot").gone_node().node()
    log.change(hold="uncontained-memory", mark={"id": "i2", "state": "pending"}, user=WATCHER)
    log.change(mark={"id": "i1", "state": "owned"})
    assert [each.end for each in incidents(log.writes)] == [""]
    assert [each.end for each in incidents(log.hand_off().writes)] == ["handed_off"]


def test_another_machine_under_the_old_name_is_a_node_of_its_own():
    log = drained_node().gone_node().node()
    log.nodes["n1"]["spec"]["providerID"] = "another"
    log.condition("gpu-lost").hold("gpu-lost", incident="i2")
    assert [each.end for each in incidents(log.writes)] == ["superseded", ""]


ENDINGS = {
    "repaired": lambda: repaired(),
    "recovered": lambda: drained_node().condition(status="True").release().close(),
    "cancelled": lambda: drained_node().change(user="person:ada", hold="", mark=None),
    "handed_off": lambda: drained_node().hand_off(),
    "replaced": lambda: replaced(),
    "superseded": lambda: drained_node().gone_node(),
}


def test_what_ends_with_its_fault_standing_was_cancelled():
    assert [each.end for each in incidents(drained_node().close().writes)] == ["cancelled"]


def test_a_hold_that_somebody_took_and_nobody_put_back_was_cancelled():
    log = drained_node().change(user="person:ada", hold="").condition(status="True").close()
    assert [each.end for each in incidents(log.writes)] == ["cancelled"]


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
