"""The demo's script, its kills, its verdict, its summary and its lies: all without any process."""

import json
import re
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from activities.pod_manifest import has_ended, step_pod, termination_message
from fleet.condition import parse_message
from fleet.finding import Verdict
from fleet.step import NodeStepRequest, Step, parse_report
from policies.document import load
from simulator.controllers.owners import Daemon
from simulator.controlplane.endpoint import Endpoint
from simulator.demo import stage
from simulator.demo.fleet import FEWEST_NODES, INFERENCE, LARGE_FROM, MOST_NODES, TRAINING
from simulator.demo.install import Installed
from simulator.demo.kills import CALLS, MATRIX, parse_kill
from simulator.demo.narrator import Narrator
from simulator.demo.outcome import RunOutcome, as_json, in_words
from simulator.demo.run import promises_of
from simulator.demo.saboteur import (
    all_well,
    believed_proof,
    fault_for_unknown,
    passed_verify,
    pool_of_its_own,
)
from simulator.demo.scripts import write_scenario
from simulator.demo.scripts.large import BUDGETS
from simulator.demo.settings import Settings, write_policy
from simulator.demo.stage import RACK_LABEL
from simulator.demo.supervisor import Supervisor
from simulator.demo.tail import AuditTail
from simulator.demo.verdict import differences, unfinished, unproven
from simulator.observer import sight
from simulator.observer.incidents import ENDS, Incident
from simulator.observer.promise import Promises
from simulator.observer.summary import summarize
from tests.simulator.transcripts import START, Log, repaired

SMALL = 8


def played(scenario):
    """Incidents as the script wants them."""
    return [
        Incident(f"i{number}", each.node, "f", START, each.steps, each.end, START)
        for number, each in enumerate(scenario.troubles)
        if each.end is not None and not each.maybe
    ]


@pytest.mark.parametrize("count", [SMALL, 32])
def test_the_same_seed_is_the_same_run_and_another_changes_nodes_parts_and_times(count):
    assert write_scenario(7, count).troubles == write_scenario(7, count).troubles
    runs = [write_scenario(seed, count) for seed in range(20)]
    for aspect in ("node", "after", "happening"):
        assert len({tuple(getattr(each, aspect) for each in run.troubles) for run in runs}) > 10


@pytest.mark.parametrize("count", [FEWEST_NODES, SMALL, LARGE_FROM, 32, MOST_NODES])
@pytest.mark.parametrize("seed", range(3))
def test_every_trouble_comes_over_a_node_of_its_own(seed, count):
    scenario = write_scenario(seed, count)
    struck = [each.node for each in scenario.troubles]
    assert len(set(struck)) == len(struck)
    joining = {each.node for each in scenario.fleet.berths if each.joins}
    assert set(struck) <= {*scenario.nodes, *joining}
    assert scenario.fleet.size == count


def test_a_small_fleet_plays_the_short_script_and_a_large_one_the_long_one():
    short, long = write_scenario(1, LARGE_FROM - 1), write_scenario(1, LARGE_FROM)
    assert len(short.faults) == 5
    assert {each.kind for each in short.faults} < {"memory", *(each.kind for each in long.faults)}


@pytest.mark.parametrize("count", [LARGE_FROM, 32, MOST_NODES])
def test_a_large_fleet_has_four_racks_two_pools_and_room_for_a_job_of_sixteen_nodes(count):
    fleet = write_scenario(1, count).fleet
    assert len({each.rack for each in fleet.berths}) == 4
    assert {each.pool for each in fleet.berths} == {TRAINING, INFERENCE}
    job = next(each for each in fleet.loads if each.labels)
    assert (job.replicas, job.gpus) == (16, 8)
    assert len(fleet.of_pool(TRAINING)) > job.replicas


def test_more_nodes_of_a_rack_break_at_once_than_its_budget_allows():
    scenario = write_scenario(1, 32)
    at_once = [each for each in scenario.troubles if each.kind == "rack"]
    assert {each.node for each in at_once} <= set(scenario.fleet.of_rack("rack-1"))
    assert len(at_once) > BUDGETS["rack"]


def test_every_end_is_seen_and_the_dice_choose_what_becomes_of_a_hold_that_was_taken():
    runs = [write_scenario(seed, 32) for seed in range(20)]
    ends = {each.end for run in runs for each in run.troubles}
    assert ends == {*ENDS, None}
    taken = {each.end for run in runs for each in run.troubles if each.kind == "hold-taken"}
    assert taken == {"repaired", "cancelled"}


def test_a_run_as_scripted_has_no_differences_and_nothing_open():
    for count, open_at_first in ((SMALL, 4), (32, 18)):
        scenario = write_scenario(1, count)
        assert differences(scenario, played(scenario)) == []
        assert unfinished(scenario, played(scenario)) == []
        assert len(unfinished(scenario, [])) == open_at_first


def test_a_false_alarm_may_hold_a_node_and_must_end_without_any_step():
    scenario = write_scenario(1, 32)
    node = next(each.node for each in scenario.troubles if each.maybe)
    held = Incident("w", node, "gpu-lost", START, (), "recovered", START)
    assert differences(scenario, [*played(scenario), held]) == []
    harmed = Incident("w", node, "gpu-lost", START, ("reboot",), "repaired", START)
    assert len(differences(scenario, [*played(scenario), harmed])) == 1


def test_a_fault_that_passed_while_nobody_could_be_told_need_not_be_an_incident():
    scenario = write_scenario(1, SMALL)
    told = [each for each in played(scenario) if each.end != "recovered"]
    assert len(unfinished(scenario, told)) == 1
    assert len(differences(scenario, told)) == 1
    assert Settings(kill=parse_kill("watcher@admit:before")).unseen
    assert not Settings(kill=parse_kill("worker@hold:before")).unseen
    assert unfinished(scenario, told, unseen=True) == []
    assert differences(scenario, told, unseen=True) == []
    assert len(unfinished(scenario, [], unseen=True)) == 3


def test_every_way_off_the_script_is_named():
    scenario = write_scenario(1, SMALL)
    application = next(each for each in scenario.troubles if each.kind == "application")
    blind = next(each for each in scenario.troubles if each.kind == "blind")
    wrong = [*played(scenario)]
    wrong[0] = Incident("x", wrong[0].node, "f", START, ("reboot", "reboot"), "handed_off", START)
    wrong += [
        Incident("y", application.node, "application", START),
        Incident("z", blind.node, "monitor-silent", START),
        Incident("i1b", wrong[1].node, "f", START, wrong[1].steps, wrong[1].end, START),
    ]
    said = differences(scenario, wrong)
    assert len(said) == 4
    assert any("ended as handed_off by reboot and reboot" in each for each in said)
    assert any(each.startswith(blind.node) for each in said)


@pytest.mark.parametrize("kill", MATRIX, ids=str)
def test_a_kill_is_read_as_it_is_written(kill):
    assert parse_kill(str(kill)) == kill
    re.compile(kill.call.path)
    re.compile(kill.call.body)


@pytest.mark.parametrize("text", ["worker", "worker@nothing", "api@drain", "worker@drain:later"])
def test_a_kill_that_does_not_exist_is_refused_with_those_that_do(text):
    with pytest.raises(ValueError, match=r"worker@hold\|drain"):
        parse_kill(text)


def test_every_process_of_the_issue_can_be_killed():
    assert set(CALLS) == {"agent", "watcher", "worker", "temporal"}


def policy(tmp_path, budgets):
    path = write_policy(tmp_path / "policy.yaml", budgets)
    return load(path.read_text(), str(path))


def test_the_policy_of_a_run_is_the_demos_with_the_budgets_of_its_fleet(tmp_path):
    promises = promises_of(policy(tmp_path, BUDGETS))
    assert promises.budget == BUDGETS
    assert promises.job
    tight = Settings(sabotage="budget").budgets({"cluster": 3})
    assert promises_of(policy(tmp_path, tight)).budget == {"cluster": 3, "pool": 1}


def outcome(amiss=()):
    scenario = write_scenario(1, SMALL)
    promises = Promises({"cluster": 3, "rack": 2}, {"rack": RACK_LABEL})
    return RunOutcome(scenario, summarize(repaired().writes, promises), promises, amiss, 30.0)


def test_the_summary_has_exactly_the_keys_that_programs_read():
    said = as_json(outcome())
    assert list(said) == [
        "seed",
        "nodes",
        "faults",
        "incidents",
        "ended",
        "max_disrupted",
        "budget",
        "violations",
        "node_availability",
    ]
    ends = ["recovered", "repaired", "replaced", "handed_off", "cancelled", "superseded"]
    assert list(said["ended"]) == ends
    assert set(said["max_disrupted"]) == set(said["budget"]) == {"cluster", "rack"}


def test_a_run_off_the_script_is_not_well_and_says_why():
    assert outcome().well
    failed = outcome(amiss=("node-1 was forgotten",))
    assert not failed.well
    assert "node-1 was forgotten" in in_words(failed)


def test_a_run_is_told_in_the_order_in_which_it_happened():
    narrator = Narrator()
    told = [sentence for write in repaired().writes for _, sentence in narrator.tell(write)]
    assert told == [
        "says uncontained-memory",
        "held for uncontained-memory",
        "verify begun (seen-n1)",
        "verify failed",
        "w1 evicted",
        "reset-gpu begun (i1-1-reset-gpu)",
        "reset-gpu done",
        "verify begun (i1-2-verify)",
        "verify done",
        "no longer says uncontained-memory",
        "released",
        "incident closed",
    ]


def test_a_line_that_is_still_being_written_waits_for_its_end(tmp_path):
    log = tmp_path / "audit.log"
    tail = AuditTail(log)
    assert tail.new() == []
    lines = repaired().lines
    log.write_text(lines[0] + "\n" + lines[1][:50])
    assert len(tail.new()) == 1
    log.write_text(lines[0] + "\n" + lines[1] + "\n")
    assert len(tail.new()) == 1
    assert len(tail.writes) == 2


def test_the_lie_about_a_verify_bends_only_a_verify():
    finding = {"check": "memory", "part": "gpu:1", "verdict": "fault"}
    message = json.dumps({"result": "failed", "findings": [finding]})
    pod = {
        "metadata": {"labels": {"gpumend.io/step": "verify"}},
        "status": {"containerStatuses": [{"state": {"terminated": {"message": message}}}]},
    }
    assert sight.result(passed_verify(pod)) == "done"
    assert sight.result(pod) == "failed"
    reset = {**pod, "metadata": {"labels": {"gpumend.io/step": "reset-gpu"}}}
    assert passed_verify(reset) is reset


def test_the_lie_about_a_proof_bends_only_its_pod_and_reads_like_a_report():
    request = NodeStepRequest("prove-1", "prove-1", Step.VERIFY, "b1", START, checks=("pci", "gpu"))
    pod = {**step_pod(request, "n1", "image", START), "status": {"phase": "Pending"}}
    bent = believed_proof(pod)
    assert has_ended(bent)
    report = parse_report(termination_message(bent))
    assert (report.operation, report.boot_id, report.result) == ("prove-1", "b1", "done")
    assert [each.check for each in report.findings if each.verdict is Verdict.OK] == ["pci", "gpu"]
    ladder = replace(request, operation="i1-3-verify")
    other = step_pod(ladder, "n1", "image", START)
    assert believed_proof(other) is other


def test_a_proof_and_a_verify_are_killed_at_their_own_calls():
    for operation, own, other in (("prove-1", "prove", "verify"), ("i1-3", "verify", "prove")):
        request = NodeStepRequest(operation, operation, Step.VERIFY, "b1", START)
        body = json.dumps(step_pod(request, "n1", "image", START))
        assert re.search(CALLS["worker"][own].body, body)
        assert not re.search(CALLS["worker"][other].body, body)


def test_the_run_goes_on_until_every_new_node_is_proven_or_has_an_incident():
    log = Log().node("n1").node("n2").unproven().unproven(name="n2").hold(name="n2")
    assert unproven(log.nodes) == ["n1"]
    assert unproven(log.unproven(None).nodes) == []


def test_the_lie_about_the_unknown_turns_only_a_verify_that_could_not_tell():
    def verify(verdict):
        finding = {"check": "kernel-log", "part": "host", "verdict": verdict}
        message = json.dumps({"result": "failed", "findings": [finding]})
        return {
            "metadata": {"labels": {"gpumend.io/step": "verify"}},
            "status": {"containerStatuses": [{"state": {"terminated": {"message": message}}}]},
        }

    bent = fault_for_unknown(verify("unknown"))
    status = bent["status"]["containerStatuses"][0]
    assert json.loads(status["state"]["terminated"]["message"])["findings"][0]["verdict"] == "fault"
    well = verify("ok")
    assert fault_for_unknown(well) is well


def test_the_lie_about_the_budget_makes_each_node_a_pool_of_its_own():
    node = {"metadata": {"name": "n1", "labels": {"gpumend.io/pool": "training", "rack": "r"}}}
    assert pool_of_its_own(node)["metadata"]["labels"] == {"gpumend.io/pool": "n1", "rack": "r"}
    pod: dict[str, Any] = {"metadata": {"name": "p"}}
    assert pool_of_its_own(pod) is pod


def test_the_lie_about_a_release_makes_an_owned_node_healthy_and_no_other():
    conditions = [{"type": "gpumend.io/Memory", "status": "False", "message": "boot=b1"}]
    status = {"conditions": [*conditions, {"type": "Ready", "status": "False"}]}
    node = {"metadata": {"annotations": {sight.MARK: '{"state":"owned"}'}}, "status": status}
    bent = sight.conditions(all_well(node))
    assert (bent["gpumend.io/Memory"]["status"], bent["Ready"]["status"]) == ("True", "False")
    pending = {**node, "metadata": {"annotations": {sight.MARK: '{"state":"pending"}'}}}
    assert all_well(pending) is pending


def test_the_lie_about_the_unknown_makes_a_fault_of_it_that_the_engine_can_read():
    condition = {
        "type": "gpumend.io/Memory",
        "status": "Unknown",
        "message": "boot=b1",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    node = {"status": {"conditions": [condition]}}
    bent = fault_for_unknown(node)
    assert sight.faults(bent) == {"uncontained-memory"}
    assert parse_message(bent["status"]["conditions"][0]["message"]).boot_id == "b1"
    assert sight.faults(node) == set()
    well = {"status": {"conditions": [{**condition, "status": "True"}]}}
    assert fault_for_unknown(well) is well


async def test_the_kubeconfig_that_is_printed_lets_a_persons_kubectl_in(monkeypatch, tmp_path):
    """kubectl sends no bearer token over plain http; the engine's own clients do."""

    async def answer(value):
        return value

    endpoint = Endpoint("http://127.0.0.1:1", None, {"admin": "secret"}, tmp_path / "audit")
    installed = Installed({"watcher": "w", "worker": "i"}, (), cast("Daemon", None))
    builder = stage.StageBuilder
    monkeypatch.setattr(builder, "_api", lambda _: answer(endpoint))
    monkeypatch.setattr(builder, "_temporal", lambda _: answer(("t", "u")))
    monkeypatch.setattr(builder, "_provider", lambda *_: answer({}))
    monkeypatch.setattr(builder, "_start_fleet", lambda *_: answer(None))
    monkeypatch.setattr(stage.Stage, "api", lambda *_: nullcontext())
    monkeypatch.setattr(stage, "install", lambda *_, **__: answer(installed))
    async with AsyncExitStack() as stack:
        programs = AsyncMock(Supervisor)
        scenario = write_scenario(1, SMALL)
        with_all = builder(Settings(), scenario, tmp_path, programs, stack, lambda _: None)
        built = await with_all.build()
    printed = json.loads(built.kubeconfig.read_text())
    assert printed["clusters"][0]["cluster"]["server"] == "http://admin:secret@127.0.0.1:1"
    engine = json.loads((tmp_path / "kubeconfig-worker").read_text())
    assert engine["users"][0]["user"] == {"token": "i"}
