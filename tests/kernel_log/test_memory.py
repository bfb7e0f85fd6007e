"""Lines that mean more, or less, for what the same boot's log said before."""

import pytest

from probes.kernel_log.memory import NEAR
from probes.kernel_log.read import Reader

XID = "NVRM: Xid (PCI:0000:52:00): "
RESET = f"{XID}154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
NONE = f"{XID}154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
UNCONTAINED = f"{XID}95, pid=5171, Uncontained: FBHUB. RST: Yes, D-RST: No"
HEARTBEAT = "NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs "
NONFATAL = "nvidia 0000:07:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Data"
FATAL_RECORD = "[Hardware Error]: event severity: fatal"


def last(*log):
    reader = Reader()
    readings = [reader.read(line) for line in log]
    (reading,) = readings[-1]
    return reading


def what(reading):
    return reading.sev, reading.action, reading.fault


@pytest.mark.parametrize(
    ("before", "fault"),
    [
        ([], "firmware-halted"),
        ([UNCONTAINED], "uncontained-memory"),
        ([f"{XID}74, NVLink: fatal error detected on link 14"], "nvlink-error"),
        ([UNCONTAINED, f"{XID}94, Contained: SM (0x1)"], "uncontained-memory"),
        ([UNCONTAINED.replace("0000:52", "0000:53")], "firmware-halted"),
        ([UNCONTAINED, NONE], "firmware-halted"),
        ([UNCONTAINED, NONE, UNCONTAINED], "uncontained-memory"),
    ],
)
def test_a_memory_or_link_fault_of_the_same_gpu_explains_its_recovery_action(before, fault):
    assert what(last(*before, RESET)) == ("fatal", "reset_gpu", fault)


def test_a_failed_probe_of_an_unsupported_gpu_is_a_mismatch_and_never_a_reboot():
    named = "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b06)"
    unsupported = "NVRM: installed in this system is not supported by open"
    failed = "NVRM: The NVIDIA probe routine failed for 1 device(s)."
    other = "nvidia 0000:0a:00.0: probe with driver nvidia failed with error -1"
    assert what(last(named, unsupported, failed)) == ("degraded", "hold", "config-mismatch")
    assert last(named, unsupported).pci == "0000:01:00.0"
    assert last(named, unsupported, other).action == "reboot"
    assert last(named, unsupported, *["x"] * NEAR, failed).action == "reboot"


def test_a_lost_gpu_is_named_by_the_first_of_its_three_lines():
    reading = last(
        "NVRM: The NVIDIA GPU 0000:b3:00.0",
        "NVRM: (PCI ID: 10de:26b5) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    )
    assert (reading.pci, reading.line) == ("0000:b3:00.0", 3)


def test_a_heartbeat_of_the_gsp_that_fails_again_is_a_halted_firmware():
    first, second = HEARTBEAT + "812751949", HEARTBEAT + "812759999"
    assert what(last(first)) == ("degraded", "hold", "unknown-code")
    assert what(last(first, second)) == ("fatal", "reset_gpu", "firmware-halted")
    assert what(last(first, second.replace("GPU6", "GPU7")))[1] == "hold"
    assert what(last(first, "NVRM: GPU6 _kgspRpcRecvPoll: GSP RM heartbeat timed out"))[1] == "hold"


def test_nonfatal_errors_drain_only_when_a_gpu_repeats_them():
    port = NONFATAL.replace("nvidia", "pcieport")
    assert last(NONFATAL).action == "hold"
    assert last(NONFATAL, NONFATAL).action == "drain"
    assert last(port, port).action == "hold"
    headline = "pcieport 0000:00:03.1: AER: Uncorrected (Non-Fatal) error received: 0000:07:00.0"
    assert last(headline, NONFATAL, headline).action == "drain"


@pytest.mark.parametrize(
    ("log", "action"),
    [
        ([f"[ 5000.123456] {{1}}{FATAL_RECORD}"], "reboot"),
        ([f"[    3.123456] {{1}}{FATAL_RECORD}"], "hold"),
        ([f"3,900,2345678,-;{{1}}{FATAL_RECORD}"], "hold"),
        ([f"3,900,5002345678,-;{{1}}{FATAL_RECORD}"], "reboot"),
        (["BERT: Error records from previous boot:", FATAL_RECORD], "hold"),
        (["BERT: Error records from previous boot:", *["x"] * NEAR, FATAL_RECORD], "reboot"),
        (["BERT: Error records from previous boot:", f"[ 99.123456] {FATAL_RECORD}"], "reboot"),
    ],
)
def test_a_record_of_the_boot_before_never_reboots(log, action):
    assert last(*log).action == action


def test_a_queue_of_ena_is_the_hosts_unless_efa_has_its_function():
    queue = "ena 0000:00:06.0 eth1: NETDEV WATCHDOG: CPU: 5: transmit queue 3 timed out 5032 ms"
    assert last(queue).fault == "host-degraded"
    assert last("efa 0000:00:06.0: Setup irq:0x4 vector:0", queue).fault == "nic-degraded"
