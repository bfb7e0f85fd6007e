from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleet.fault import Advice, Fault, FaultName
from fleet.finding import Finding, Verdict
from fleet.node import NodeIdentity
from fleet.part import Part, parse_part
from fleet.report import Report

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LOST = Fault(Part("gpu:3"), FaultName.GPU_LOST, "xid:79", Advice.REBOOT, 1, AT)
REPORT = Report(NodeIdentity("c1", "n1", "u1", "m1"), "b1", (LOST,), (), AT)


def test_counts_and_times_do_not_change_a_fingerprint():
    later = replace(
        REPORT,
        faults=(replace(LOST, count=900, since=AT + timedelta(hours=1)),),
        observed=AT + timedelta(hours=2),
    )
    assert later.fingerprint == REPORT.fingerprint


def test_the_same_fault_under_another_xid_is_no_news():
    other = replace(REPORT, faults=(replace(LOST, code="xid:110"),))
    assert other.fingerprint == REPORT.fingerprint


def test_whose_work_was_hit_is_news_once():
    hit = replace(REPORT, faults=(replace(LOST, pods=("one",)),))
    others = replace(REPORT, faults=(replace(LOST, pods=("one", "two")),))
    assert hit.fingerprint == others.fingerprint != REPORT.fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        replace(REPORT, boot_id="b2"),
        replace(REPORT, faults=()),
        replace(REPORT, unknown=("gpumend.io/GPU: stale",)),
        replace(REPORT, witness=False),
        replace(REPORT, faults=(replace(LOST, part=Part("gpu:4")),)),
        replace(REPORT, faults=(replace(LOST, name=FaultName.DRIVER_HUNG),)),
        replace(REPORT, faults=(replace(LOST, code="condition:GPU=False"),)),
        replace(REPORT, faults=(replace(LOST, advice=Advice.RESET_GPU),)),
    ],
)
def test_what_matters_changes_a_fingerprint(changed):
    assert changed.fingerprint != REPORT.fingerprint


def test_the_order_of_faults_does_not_matter():
    other = replace(LOST, part=Part("gpu:5"))
    one, two = replace(REPORT, faults=(LOST, other)), replace(REPORT, faults=(other, LOST))
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize(
    ("report", "clean"),
    [
        (replace(REPORT, faults=()), True),
        (REPORT, False),
        (replace(REPORT, faults=(), unknown=("gpumend.io/GPU: absent",)), False),
        (replace(REPORT, faults=(), witness=False), False),
    ],
)
def test_only_a_witness_without_doubt_makes_a_node_clean(report, clean):
    assert report.clean is clean


def test_a_verdict_has_neither_truth_nor_order():
    with pytest.raises(TypeError, match="three values"):
        bool(Verdict.UNKNOWN)
    with pytest.raises(TypeError):
        sorted([Verdict.OK, Verdict.UNKNOWN])  # type: ignore[type-var]


def test_a_finding_names_a_fault_exactly_when_it_is_one():
    with pytest.raises(ValueError, match="needs a name"):
        Finding("pci", Part("gpu:3"), Verdict.FAULT)
    with pytest.raises(ValueError, match="only a fault"):
        Finding("pci", Part("gpu:3"), Verdict.UNKNOWN, fault=FaultName.GPU_LOST)


@pytest.mark.parametrize(
    "text",
    [
        "host",
        "gpu:3",
        "gpu:3/mig:1",
        "nvlink:3/7",
        "nic:rdmap16s27",
        "pci:0000:52:00",
        "pci:00000001:52:00.0",
    ],
)
def test_every_kind_of_part_is_read(text):
    assert parse_part(text) == text


@pytest.mark.parametrize("text", ["", "gpu", "gpu:-1", "nic:a b", "gpu:3\n", "pci:52:00", "GPU:3"])
def test_what_is_no_part_is_refused(text):
    with pytest.raises(ValueError, match="not a part of a node"):
        parse_part(text)
