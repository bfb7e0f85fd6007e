"""What the knowledge says about kinds of lines, one row a sentence; nothing here is a memory."""

import pytest

from probes.kernel_log.read import read

XID = "NVRM: Xid (PCI:0000:01:00): "
CHANGED = f"{XID}154, GPU recovery action changed from 0x0 (None) to "

ROWS = [
    # Xid 154, by value and never by label
    (f"{XID}154, GPU recovery action changed from 0x1 (Reset) to 0x0 (None)", "info none none"),
    (f"{CHANGED}0x1 (PF FLR)", "fatal reset_gpu firmware-halted"),
    (f"{CHANGED}0x2 (GPU Reset Required)", "fatal reboot driver-hung"),
    (f"{CHANGED}0x3 (Drain P2P)", "fatal drain nvlink-error"),
    (f"{CHANGED}0x4 (Drain and Reset)", "fatal reset_gpu firmware-halted"),
    (f"{CHANGED}0x5 (Recover IMEX)", "fatal hold fabric-not-ready"),
    (f"{CHANGED}0x6 (Bus Reset)", "fatal reboot gpu-lost"),
    (f"{CHANGED}0x7 (System Reboot)", "fatal reboot driver-hung"),
    (f"{CHANGED}0x8 (None)", "degraded hold unknown-code"),
    (f"{CHANGED}", "unknown follow_recovery_action none"),
    (f"{XID}154", "unknown follow_recovery_action none"),
    # what the text of a memory Xid adds
    (f"{XID}94, pid=1, Contained: SM (0x1). RST: Yes, D-RST: No",
     "degraded reset_gpu contained-memory"),
    (f"{XID}94, pid=1, name=RST: Yes, Ch 00000008", "degraded hold contained-memory"),
    (f"{XID}172, SRAM error threshold exceeded", "fatal replace memory-exhausted"),
    # link events: "Fatal" is not the verdict
    (f"{XID}149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x028001c6 0x00000000)", "warning none none"),
    (f"{XID}149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000)",
     "fatal reset_gpu nvlink-error"),
    (f"{XID}149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6", "degraded hold unknown-code"),
    (f"{XID}149, NETIR_LI", "degraded hold unknown-code"),
    # lost or to be reset, without an Xid
    ("NVRM: GPU0 nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus "
     "[NV_ERR_GPU_IS_LOST] (0x0000000F) returned from x @ y.c:1", "fatal reboot gpu-lost"),
    ("NVRM: nvCheckOkFailedNoLog: Check failed: x [NV_ERR_RESET_REQUIRED] (0x00000073)",
     "fatal reset_gpu firmware-halted"),
    ("NVRM: GPU 0000:01:00.0: GPU marked for reset", "fatal reset_gpu firmware-halted"),
    ("NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 812751949",
     "degraded hold unknown-code"),
    ("nvidia 0000:0a:00.0: probe with driver nvidia failed with error -1",
     "fatal reboot gpu-lost"),
    ("nvidia: probe of 0000:0a:00.0 failed with error -1", "fatal reboot gpu-lost"),
    ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x65:1472)", "fatal reboot gpu-lost"),
    ("NVRM: uvm encountered global fatal error 0x60, requiring os reboot to recover.",
     "fatal reboot driver-hung"),
    ("NVRM: API mismatch: the client has the version 550.54.15, but",
     "degraded hold config-mismatch"),
    ("NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b06)#012NVRM: installed in this system is "
     "not supported by this kernel module", "degraded hold config-mismatch"),
    # PCIe
    ("pcieport 0000:00:03.1: AER: Multiple Uncorrected (Fatal) error received: 0000:07:00.0",
     "fatal drain pcie-degraded"),
    ("nvidia 0000:07:00.0: AER: can't recover (no error_detected callback)",
     "fatal drain pcie-degraded"),
    ("nvidia 0000:07:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Data Link",
     "degraded hold pcie-degraded"),
    ("nvme 0000:09:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link",
     "fatal hold pcie-degraded"),
    # network adapters
    ("mlx5_core 0000:5c:00.0: poll_health:825:(pid 0): device's health compromised - reached miss",
     "fatal drain nic-degraded"),
    ("mlx5_core 0000:0b:00.0: Port module event: module 0, Cable unplugged", "warning none none"),
    ("NETDEV WATCHDOG: eth0 (ena): transmit queue 3 timed out", "degraded hold host-degraded"),
    ("efa 0000:00:06.0 rdmap0s6: Admin queue is closed", "fatal drain nic-degraded"),
    ("infiniband rdmap0s6: The device didn't send any completion for admin cmd 5 status 0",
     "fatal drain nic-degraded"),
    # host
    ("{1}[Hardware Error]: event severity: fatal", "fatal reboot host-memory"),
    ("{1}[Hardware Error]: event severity: recoverable", "degraded drain host-memory"),
    ("{1}[Hardware Error]: event severity: corrected", "warning none none"),
    ("{1}[Hardware Error]: event severity: info", "info none none"),
    ("[    2.345678] {1}[Hardware Error]: event severity: fatal", "degraded hold unknown-code"),
    ("BERT: Error records from previous boot:", "degraded hold unknown-code"),
    ("EDAC MC0: 1 CE memory scrubbing error on CPU_SrcID#0", "warning none none"),
    ("mce: [Hardware Error]: CPU 1: Machine Check Exception: 5 Bank 7: be00000000800400",
     "fatal drain host-memory"),
    ("mce: [Hardware Error]: CPU 1: Machine Check: 0 Bank 7: 8c00004000010090",
     "warning none none"),
    ("systemd-journald[512]: Missed 1024 kernel messages", "degraded none none"),
]  # fmt: skip

NOISE = [
    "",
    "NVRM: Xid (PCI:0000:b9:00): , pid=1234",
    "NVRM: Xid (PCI:0000:b9",
    "NVRM: RmInitAdapter: Cannot initialize GSP firmware RM",
    "NVRM: Failed to load gsp_log_ga10x.bin (non-fatal)",
    "NVRM: GPU0 nvAssertFailedNoLog: Assertion failed: (status == NV_OK) || "
    "(status == NV_ERR_GPU_IS_LOST) @ rs_client.c:844",
    "nvidia-modeset: ERROR: GPU:0: Failed to query display engine channel state",
    "[drm:nv_drm_master_set [nvidia_drm]] *ERROR* Failed to grab modeset ownership",
    "nvidia-modeset: NvKmsKapiDevice 0x0 failed",
    "nvidia-uvm: Loaded the UVM driver, major device number 234.",
    "mlx5_core 0000:0b:00.0: mlx5_cmd_out_err:808: ACCESS_REG(0x805) op_mod(0x1) failed",
    "systemd-networkd[53]: vethabc: Lost carrier",
    "systemd-networkd[53]: eni0123abcdef: Lost carrier",
    "python[1]: segfault at 0 ip 00 sp 00 error 4 in libcuda.so.550[7f+1]",
    "EDAC MC0: Giving out device to module i10nm_edac controller",
    "NVRM: GPU is on Board 0000.",
]


@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_a_kind_of_line_says(text, expected):
    reading = read(text)[-1]
    assert f"{reading.sev} {reading.action} {reading.fault}" == expected


@pytest.mark.parametrize("text", NOISE)
def test_noise_reads_as_nothing(text):
    assert read(text) == ()


def test_a_link_that_is_not_there_has_no_number():
    (reading,) = read(f"{XID}149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000)")
    assert (reading.link, reading.unit, reading.reason, reading.status) == (None, "NETIR", 0, 0)


@pytest.mark.parametrize(
    ("printed", "pci"),
    [
        ("PCI:0000:0a:00", "0000:0a:00"),
        ("0000:0A:00", "0000:0a:00"),
        ("PCI:00000000:3B:00.0", "0000:3b:00.0"),
        ("PCI:10000:e1:00", "10000:e1:00"),
        ("0003:00", "0000:03:00"),
    ],
)
def test_a_device_has_one_name_however_it_is_printed(printed, pci):
    (reading,) = read(f"NVRM: Xid ({printed}): 79, GPU has fallen off the bus.")
    assert reading.pci == pci


@pytest.mark.parametrize(
    ("tail", "pid", "name"),
    [
        (", pid=13332, name=cuda_plot_k32_v, Ch 00000010", 13332, "cuda_plot_k32_v"),
        (", pid=7, name=VLLM::Worker, channel 0x00000008", 7, "VLLM::Worker"),
        (", pid=7, name=Web, Content, Ch 00000008", 7, "Web"),
        (", pid=7, name=python3", 7, "python3"),
        (", pid='<unknown>', name=<unknown>, Graphics", None, None),
        (", pid=1896, Row Remapper", 1896, None),
        (", GPU has fallen off the bus.", None, None),
        ("", None, None),
    ],
)
def test_the_process_is_known_where_the_line_has_it(tail, pid, name):
    (reading,) = read(f"{XID}31{tail}")
    assert (reading.pid, reading.name) == (pid, name)
