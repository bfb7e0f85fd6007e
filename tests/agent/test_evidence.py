"""What a line of the log does to a node: the table from readings to claims."""

import pytest

from fleet.fault import Advice, FaultName, Severity
from fleet.part import HOST
from probes.evidence import Claim, Cleared, Counted, driver_verdict, weigh
from probes.kernel_log.read import read
from probes.kernel_log.reading import Reading
from probes.parts import Gpu, Naming
from tests.agent.fake_machine import recovery, xid

NAMING = Naming({"0000:52:00": Gpu(3, "7f3a9c01")})


def weigh_line(text: str, naming: Naming = NAMING):
    (reading,) = read(text)
    return weigh(reading, naming)


@pytest.mark.parametrize(
    ("line", "part", "fault", "code", "advice"),
    [
        (xid("0000:52:00", 95), "gpu:3", "uncontained-memory", "xid:95", "reset-gpu"),
        (xid("0000:53:00", 95), "pci:0000:53:00", "uncontained-memory", "xid:95", "reset-gpu"),
        (xid("0000:52:00 GPU-I:05", 94), "gpu:3/mig:5", "contained-memory", "xid:94", "hold"),
        (xid("0000:52:00", 79), "gpu:3", "gpu-lost", "xid:79", "reboot"),
        (xid("0000:52:00", 9999), "gpu:3", "unknown-code", "xid:9999", "hold"),
        (
            "NVRM: GPU 0000:52:00.0: GPU has fallen off the bus.",
            "gpu:3",
            "gpu-lost",
            "nvrm:fallen_off_bus",
            "reboot",
        ),
        (
            "NVRM: The NVIDIA probe routine failed for 1 device(s).",
            "host",
            "gpu-lost",
            "nvrm:probe_failed",
            "reboot",
        ),
        (
            "infiniband rdmap0s6: Admin queue is closed",
            "nic:rdmap0s6",
            "nic-degraded",
            "efa:admin_queue_closed",
            "drain",
        ),
    ],
)
def test_a_line_claims_a_fault_on_the_part_it_names(line, part, fault, code, advice):
    said = weigh_line(line)
    assert isinstance(said, Claim)
    assert (said.part, said.fault, said.code, said.advice) == (part, fault, code, advice)


def test_a_link_error_names_the_link_where_the_index_of_its_gpu_is_known():
    tail = "NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021425c6 0x00000000 0x0 0x0 0x0 0x0)"
    said = weigh_line(xid("0000:52:00", 149, tail))
    assert isinstance(said, Claim)
    assert said.part == "nvlink:3/1"
    elsewhere = weigh_line(xid("0000:53:00", 149, tail))
    assert isinstance(elsewhere, Claim)
    assert elsewhere.part == "pci:0000:53:00"


@pytest.mark.parametrize("code", [13, 31, 43, 45])
def test_application_errors_are_only_counted(code):
    assert isinstance(weigh_line(xid("0000:52:00", code)), Counted)


@pytest.mark.parametrize(
    ("value", "fault", "advice", "severity"),
    [
        (1, "firmware-halted", "reset-gpu", "fatal"),
        (2, "driver-hung", "reboot", "fatal"),
        (3, "nvlink-error", "drain", "fatal"),
        (4, "firmware-halted", "reset-gpu", "fatal"),
        (5, "fabric-not-ready", "hand-off", "fatal"),
        (6, "gpu-lost", "reboot", "fatal"),
        (7, "driver-hung", "reboot", "fatal"),
        (8, "unknown-code", "hand-off", "degraded"),
        (0xFFFF, "unknown-code", "hand-off", "degraded"),
    ],
)
def test_the_drivers_verdict_is_read_by_value(value, fault, advice, severity):
    said = weigh_line(recovery("0000:52:00", value))
    assert said == Claim(
        part=NAMING.gpu("0000:52:00"),
        fault=FaultName(fault),
        code="xid:154",
        advice=Advice(advice),
        severity=Severity(severity),
        sub=str(value),
        verdict=True,
    )


def test_the_drivers_verdict_zero_clears():
    assert weigh_line(recovery("0000:52:00", 0)) == Cleared(NAMING.gpu("0000:52:00"))


def test_a_verdict_that_was_cut_before_its_value_neither_clears_nor_accuses():
    cut = "NVRM: Xid (PCI:0000:52:00): 154, GPU recovery action changed from 0x0 (None)"
    for reading in read(cut):
        assert isinstance(weigh(reading, NAMING), Counted)


@pytest.mark.parametrize("value", range(300))
def test_no_value_of_the_driver_but_zero_reads_as_well(value):
    assert isinstance(driver_verdict(HOST, value, "x"), Cleared) is (value == 0)


@pytest.mark.parametrize("pci", ["", "zz", "12345:678:9", "0000:52:00.f", None])
def test_a_reading_with_a_strange_address_accuses_the_host_and_never_raises(pci):
    reading = Reading("xid", 95, "memory", "fatal", "reset_gpu", "uncontained-memory", pci=pci)
    said = weigh(reading, NAMING)
    assert isinstance(said, Claim)
    assert said.part == HOST


def test_words_that_no_table_knows_are_held():
    reading = Reading("xid", 1, "x", "loud", "dance", "new-fault", pci="0000:52:00")
    said = weigh(reading, NAMING)
    assert isinstance(said, Claim)
    assert (said.fault, said.advice, said.severity) == ("unknown-code", "hold", "unknown")
