"""The demo's script, its kills, its verdict, its summary and its lies: all without any process."""

import json
import re
from contextlib import AsyncExitStack, nullcontext
from typing import cast
from unittest.mock import AsyncMock

import pytest

from fleet.condition import parse_message
from simulator.controllers.owners import Daemon
from simulator.controlplane.endpoint import Endpoint
from simulator.demo import stage
from simulator.demo.install import Installed
from simulator.demo.kills import CALLS, MATRIX, parse_kill
from simulator.demo.narrator import Narrator
from simulator.demo.outcome import RunOutcome, as_json, in_words
from simulator.demo.run import promises_of
from simulator.demo.saboteur import all_well, fault_for_unknown, passed_verify
from simulator.demo.scenario import FEWEST_NODES, MOST_NODES, write_scenario
from simulator.demo.settings import POLICY, Settings
from simulator.demo.supervisor import Supervisor
from simulator.demo.tail import AuditTail
from simulator.demo.verdict import differences, unfinished
from simulator.observer import sight
from simulator.observer.incidents import Incident
from simulator.observer.summary import summarize
from tests.simulator.transcripts import START, repaired


def played(scenario):
    """Incidents as the script wants them."""
    return [
        Incident(f"i{number}", each.node, "f", START, each.steps, each.end, START)
        for number, each in enumerate(scenario.strikes)
        if each.end is not None
    ]


def test_the_same_seed_is_the_same_run_and_another_changes_nodes_parts_order_and_times():
    assert write_scenario(7) == write_scenario(7)
    runs = [write_scenario(seed) for seed in range(20)]
    for aspect in ("node", "gpu", "nature", "after"):
        assert len({tuple(getattr(each, aspect) for each in run.strikes) for run in runs}) > 10


@pytest.mark.parametrize("count", [FEWEST_NODES, 8, MOST_NODES])
def test_every_fault_strikes_a_node_of_its_own_and_none_the_blind_one(count):
    scenario = write_scenario(3, count)
    struck = {each.node for each in scenario.strikes}
    assert len(struck) == len(scenario.strikes) == 5
    assert scenario.blind not in struck
    assert len(scenario.nodes) == count


def test_a_run_as_scripted_has_no_differences_and_nothing_open():
    scenario = write_scenario(1)
    assert differences(scenario, played(scenario)) == []
    assert unfinished(scenario, played(scenario)) == []
    assert len(unfinished(scenario, [])) == 4


def test_a_fault_that_passed_while_nobody_could_be_told_need_not_be_an_incident():
    scenario = write_scenario(1)
    told = [each for each in played(scenario) if each.end != "recovered"]
    assert len(unfinished(scenario, told)) == 1
    assert len(differences(scenario, told)) == 1
    assert Settings(kill=parse_kill("watcher@admit:before")).unseen
    assert not Settings(kill=parse_kill("worker@hold:before")).unseen
    assert unfinished(scenario, told, unseen=True) == []
    assert differences(scenario, told, unseen=True) == []
    assert len(unfinished(scenario, [], unseen=True)) == 3


def test_every_way_off_the_script_is_named():
    scenario = write_scenario(1)
    application = next(each for each in scenario.strikes if each.end is None)
    wrong = [*played(scenario)]
    wrong[0] = Incident("x", wrong[0].node, "f", START, ("reboot", "reboot"), "handed_off", START)
    wrong += [
        Incident("y", application.node, "application", START),
        Incident("z", scenario.blind, "monitor-silent", START),
        Incident("i1b", wrong[1].node, "f", START, wrong[1].steps, wrong[1].end, START),
    ]
    said = differences(scenario, wrong)
    assert len(said) == 4
    assert any("ended as handed_off by reboot and reboot" in each for each in said)
    assert any(each.startswith(scenario.blind) for each in said)


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


def outcome(amiss=()):
    from policies.document import load

    scenario = write_scenario(1)
    promises = promises_of(load(POLICY.read_text(), str(POLICY)))
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
    monkeypatch.setattr(builder, "_fleet", lambda *_: answer(None))
    monkeypatch.setattr(builder, "_admin", lambda *_: nullcontext())
    monkeypatch.setattr(stage, "install", lambda *_, **__: answer(installed))
    async with AsyncExitStack() as stack:
        programs = AsyncMock(Supervisor)
        scenario = write_scenario(1)
        with_all = builder(Settings(), scenario, tmp_path, programs, stack, lambda _: None)
        built = await with_all.build()
    printed = json.loads(built.kubeconfig.read_text())
    assert printed["clusters"][0]["cluster"]["server"] == "http://admin:secret@127.0.0.1:1"
    engine = json.loads((tmp_path / "kubeconfig-worker").read_text())
    assert engine["users"][0]["user"] == {"token": "i"}
