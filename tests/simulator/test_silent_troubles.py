"""What no kernel log tells of a simulated machine is found by the checks, and ends with a boot."""

import time

import pytest

from fleet.finding import Verdict
from probes import checks, expectations
from probes.checks.subject import Subject
from probes.machine import Machine as Seen
from probes.parts import Naming
from simulator.demo.claims import found_by_check
from simulator.hardware.machine import Machine
from simulator.hardware.nature import Ail
from simulator.observer.promise import Promises
from tests.simulator.transcripts import Log


@pytest.fixture
def machine(tmp_path):
    return Machine.create(tmp_path / "m", "node-1", gpus=2)


def subject(machine):
    seen = Seen(machine.root, machine.root / "var/lib/gpumend")
    return Subject(seen, Naming({}, machine.root))


def said(found):
    return {(each.fault, each.code) for each in found if each.verdict is Verdict.FAULT}


def test_a_driver_that_hangs_is_found_by_its_mute_child_until_the_machine_boots(
    machine, monkeypatch
):
    monkeypatch.setattr("probes.checks.subject.TOOL_LIMIT", 0.5)
    here = subject(machine)
    log = (machine.root / "dev/kmsg").read_text()
    machine.ail(Ail.DRIVER_HANG)
    found = checks.run(["presence", "pci"], here)
    assert said(found) == {("driver-hung", "child:hung")}
    assert said(checks.run(["presence"], here)) == {("driver-hung", "child:hung")}
    assert (machine.root / "dev/kmsg").read_text() == log
    machine.boot()
    while here.tools["nvml"].outstanding:
        time.sleep(0.05)
    monkeypatch.setattr("probes.checks.subject.TOOL_LIMIT", 15.0)
    assert {each.verdict for each in checks.run(["presence"], here)} == {Verdict.OK}


def test_an_adapter_that_is_gone_is_missed_though_every_link_says_active(machine):
    here = subject(machine)
    assert said(checks.run(["adapters"], here)) == set()
    expectations.remember(here.machine, expectations.ADAPTERS, here.counts[expectations.ADAPTERS])
    machine.ail(Ail.MISSING_ADAPTER)
    found = checks.run(["adapters"], here)
    assert said(found) == {("nic-missing", "adapters:missing")}
    assert {each.evidence for each in found if each.fault} == {
        "31 adapters, 32 expected (seen before)"
    }
    assert len([each for each in found if each.verdict is Verdict.OK]) == 31
    machine.boot()
    assert said(checks.run(["adapters"], here)) == set()


def told(log, **words):
    message = "boot=b1\npart=host fault={fault} code={code} advice=reboot".format(**words)
    said = {"type": "gpumend.io/Driver", "status": "False", "message": message}
    node = {"metadata": {"name": "n1"}, "status": {"conditions": [said]}}
    log.log("agent", "patch", "nodes", "n1", {}, node, subresource="status")


@pytest.mark.parametrize(
    ("words", "amiss"),
    [
        ([("driver-hung", "child:hung")], 0),
        ([], 1),
        ([("driver-hung", "xid:119")], 2),
        ([("driver-hung", "child:hung"), ("gpu-lost", "xid:79")], 1),
    ],
)
def test_a_run_must_show_that_a_check_found_it_and_the_log_did_not(words, amiss):
    log = Log()
    for fault, code in words:
        told(log, fault=fault, code=code)
    claim = found_by_check("n1", "driver-hung", "child:hung")
    assert len(claim(log.writes, Promises())) == amiss
