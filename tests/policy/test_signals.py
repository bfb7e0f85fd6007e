"""What is read from a node's conditions: faults, what could not be told, and who would know."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleet.condition import format_message
from fleet.fault import Advice, ConditionType, Fault, FaultName
from fleet.node import Condition, NodeIdentity, NodeState
from fleet.part import HOST, Part
from fleet.report import Report
from policies.document import PolicyErrors, default_policy, load
from policies.schema import Policy
from policies.signals import read_report, scopes_of

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DEFAULT = default_policy()
SIGNAL = """\
faults: {{slow: {{}}}}
signals: [{{type: A, status: 'True', reason: '{}', fault: slow}}]
"""
LOST = Fault(Part("gpu:3"), FaultName.GPU_LOST, "xid:79", Advice.REBOOT, 1, NOW - 5 * MINUTE)
READY = Condition("Ready", "True", "KubeletReady", "", NOW)


def own(kind: ConditionType, *faults: Fault, boot: str = "b1", status: str = "") -> Condition:
    status = status or ("False" if faults else "True")
    return Condition(kind.value, status, "R", format_message(boot, faults))


HEALTHY = tuple(own(kind) for kind in ConditionType)


def node(*conditions: Condition, boot: str = "b1", labels: dict[str, str] | None = None):
    """A node with a healthy agent and kubelet, except for the given conditions."""
    given = {each.type: each for each in (*HEALTHY, READY, *conditions)}
    return NodeState(
        identity=NodeIdentity("c", "n1", "u1", "m1"),
        resource_version="1",
        boot_id=boot,
        labels=labels or {},
        taints=(),
        conditions=tuple(given.values()),
        unschedulable=False,
        deleting=False,
        allocatable={},
        mark=None,
    )


def read(state: NodeState, policy: Policy = DEFAULT, now: datetime = NOW, **more) -> Report:
    return read_report(state, policy, now, more.pop("agent_silent", False), **more)


def names(report: Report) -> list[str]:
    return [each.name.value for each in report.faults]


def test_a_healthy_node_is_clean() -> None:
    assert read(node()).clean


def test_a_fault_of_our_agent_is_taken_as_it_is() -> None:
    report = read(node(own(ConditionType.GPU, LOST)))
    assert report.faults == (LOST,)
    assert report.unknown == ()
    assert report.witness


def test_conditions_of_another_boot_are_unknown_and_no_witness() -> None:
    report = read(node(boot="b2"))
    assert not report.witness
    assert not report.faults
    assert len(report.unknown) == len(ConditionType)
    assert "is of boot b1, the node is in b2" in report.unknown[0]


def test_a_fault_of_another_boot_is_unknown_too() -> None:
    report = read(node(own(ConditionType.GPU, LOST, boot="b0")))
    assert not report.faults
    assert not report.clean


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (Condition("gpumend.io/GPU", "False", "R", "nonsense"), "cannot be read"),
        (Condition("gpumend.io/GPU", "False", "R", "boot=b1\npart=gpu:3"), "cannot be read"),
        (own(ConditionType.GPU, status="False"), "contradicts itself: False with 0 faults"),
        (own(ConditionType.GPU, LOST, status="True"), "contradicts itself: True with 1 faults"),
        (own(ConditionType.GPU, LOST, status="Perhaps"), "contradicts itself: Perhaps"),
        (own(ConditionType.GPU, status="Unknown"), "gpumend.io/GPU: R"),
        (Condition("gpumend.io/GPU", "Unknown", "", "boot=b1"), "gpumend.io/GPU: no reason"),
    ],
)
def test_what_our_agent_says_unclearly_is_unknown_and_never_a_fault(
    condition: Condition, says: str
) -> None:
    report = read(node(condition))
    assert report.faults == ()
    assert len(report.unknown) == 1
    assert says in report.unknown[0]


def test_faults_that_did_not_fit_keep_the_node_from_being_clean() -> None:
    cut = Condition("gpumend.io/GPU", "False", "R", "boot=b1\nmore=3")
    report = read(node(cut))
    assert report.unknown == ("gpumend.io/GPU: 3 more faults did not fit",)


def test_a_condition_that_is_absent_is_unknown() -> None:
    state = node()
    fewer = tuple(each for each in state.conditions if each.type != "gpumend.io/PCIe")
    assert read(replace(state, conditions=fewer)).unknown == ("gpumend.io/PCIe: is absent",)


def test_a_node_without_an_agent_has_no_witness() -> None:
    report = read(replace(node(), conditions=(READY,)))
    assert not report.witness
    assert report.unknown == ("agent: has published no condition on this node",)


def test_a_node_that_names_no_boot_has_no_witness() -> None:
    assert not read(node(boot="")).witness


def test_a_silent_agent_is_a_fault_of_its_own_and_no_witness() -> None:
    report = read(node(own(ConditionType.GPU, LOST)), agent_silent=True)
    assert names(report) == ["gpu-lost", "monitor-silent"]
    assert "agent: is silent" in report.unknown
    assert not report.witness


def test_a_first_sight_in_the_future_is_a_wrong_clock() -> None:
    wrong = replace(LOST, since=NOW + timedelta(days=400))
    first = read(node(own(ConditionType.GPU, wrong)))
    assert first.faults[0].since == NOW
    later = read(node(own(ConditionType.GPU, wrong)), now=NOW + MINUTE, before=first)
    assert later.faults[0].since == NOW


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_kubelet_that_does_not_answer_is_host_unreachable(status: str) -> None:
    report = read(node(replace(READY, status=status)))
    (fault,) = report.faults
    assert (fault.name, fault.part, fault.since) == (FaultName.HOST_UNREACHABLE, HOST, NOW)
    assert fault.code == f"condition:Ready={status}"


def test_a_node_that_has_never_been_ready_is_unknown() -> None:
    report = read(replace(node(), conditions=HEALTHY))
    assert report.unknown == ("Ready: is absent",)
    assert not report.faults


def accelerated(reason: str, status: str = "False", heartbeat: datetime | None = NOW) -> Condition:
    return Condition("AcceleratedHardwareReady", status, reason, "", heartbeat)


@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        (accelerated("NvidiaXID79Error"), "gpu-lost"),
        (accelerated("NvidiaXID119Error"), "firmware-halted"),
        (accelerated("NvidiaXID95Error"), "uncontained-memory"),
        (accelerated("NvidiaXID94Error"), "contained-memory"),
        (accelerated("NvidiaXID64Error"), "memory-exhausted"),
        (accelerated("NvidiaXID74Error"), "nvlink-error"),
        (accelerated("NvidiaXID999Error"), "unknown-code"),
        (accelerated("NvidiaXID154Error"), "unknown-code"),
        (accelerated("NvidiaXID7Error"), "unknown-code"),
        (accelerated("DCGMHealthCode101"), "unknown-code"),
        (accelerated("DCGMError"), "monitor-silent"),
        (Condition("StorageReady", "False", "InstanceStoreIOError", ""), "host-degraded"),
        (Condition("ReadonlyFilesystem", "True", "FilesystemIsReadOnly", ""), "host-degraded"),
        (Condition("KernelDeadlock", "True", "DockerHung", ""), "unknown-code"),
        (Condition("SysLogsGPUFallenOff", "True", "X", ""), "gpu-lost"),
        (Condition("SysLogsXIDError", "True", "X", ""), "unknown-code"),
        (Condition("GpuDcgmConnectivityFailure", "True", "X", ""), "monitor-silent"),
    ],
)
def test_well_known_conditions_of_others_are_translated(condition: Condition, fault: str) -> None:
    assert names(read(node(condition))) == [fault]


@pytest.mark.parametrize(
    "condition",
    [
        accelerated("NvidiaXID79Error", status="True"),
        Condition("KernelDeadlock", "False", "KernelHasNoDeadlock", ""),
        Condition("NetworkingReady", "False", "IPAMDNotReady", ""),
        Condition("MemoryPressure", "True", "KubeletHasInsufficientMemory", ""),
        Condition("SomethingElse", "False", "X", ""),
        Condition("SomethingElse", "Unknown", "X", ""),
    ],
)
def test_conditions_that_are_not_listed_do_nothing(condition: Condition) -> None:
    assert read(node(condition)).clean


def test_a_listed_condition_that_does_not_know_is_unknown() -> None:
    report = read(node(accelerated("X", status="Unknown")))
    assert report.unknown == ("AcceleratedHardwareReady: is Unknown",)


def test_no_failure_of_a_monitor_leads_to_a_step() -> None:
    for condition in (
        accelerated("DCGMError"),
        Condition("GpuDcgmConnectivityFailure", "True", "", ""),
    ):
        for fault in read(node(condition)).faults:
            terms = DEFAULT.fault(fault.name)
            assert not terms.steps
            assert not terms.drain


def test_alternating_reasons_do_not_start_the_clock_again() -> None:
    """An agent that flips its reason every minute resets its transition time for ever."""
    report = None
    for minute in range(12):
        reason = "DCGMHealthCode101" if minute % 2 else "DCGMHealthCode4"
        report = read(node(accelerated(reason)), now=NOW + minute * MINUTE, before=report)
        assert [each.since for each in report.faults] == [NOW]


def test_alternating_reasons_do_not_change_the_fingerprint() -> None:
    one, other = (read(node(accelerated(f"DCGMHealthCode{n}"))) for n in (101, 4))
    assert one.fingerprint == other.fingerprint


def test_the_first_sight_of_another_node_object_does_not_count() -> None:
    before = read(node(accelerated("NvidiaXID79Error")), now=NOW - 60 * MINUTE)
    other = replace(before, node=replace(before.node, uid="u0"))
    assert read(node(accelerated("NvidiaXID79Error")), before=other).faults[0].since == NOW


@pytest.mark.parametrize("heartbeat", [None, NOW - 2 * MINUTE])
def test_a_condition_of_others_not_renewed_since_our_last_step_proves_nothing(
    heartbeat: datetime | None,
) -> None:
    condition = accelerated("NvidiaXID79Error", heartbeat=heartbeat)
    report = read(node(condition), stale_before=NOW - MINUTE)
    assert not report.faults
    assert report.unknown == ("AcceleratedHardwareReady: not renewed since our last step",)


def test_a_condition_renewed_since_our_last_step_counts() -> None:
    report = read(node(accelerated("NvidiaXID79Error")), stale_before=NOW - MINUTE)
    assert names(report) == ["gpu-lost"]


def test_the_first_signal_that_matches_counts() -> None:
    policy = load(
        "faults: {slow: {}, thermal: {}}\n"
        "signals:\n"
        "  - {type: A, status: 'True', reason: 'Hot.*', fault: thermal}\n"
        "  - {type: A, status: 'True', fault: slow}\n",
        "p",
    )
    assert names(read(node(Condition("A", "True", "HotRoom", "")), policy)) == ["thermal"]
    assert names(read(node(Condition("A", "True", "TooHot", "")), policy)) == ["slow"]


def test_a_long_reason_of_others_cannot_stall_the_watcher() -> None:
    policy = load(
        "faults: {slow: {}}\nsignals: [{type: A, status: 'True', reason: '.*x', fault: slow}]\n",
        "p",
    )
    assert not read(node(Condition("A", "True", "y" * 1_000_000 + "x", "")), policy).faults


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(", "not a regular expression"),
        ("*", "not a regular expression"),
        ("(a+)+b", "may take for ever"),
        ("(a|a)*b", "may take for ever"),
        ("(a?){40}b", "may take for ever"),
        (".*.*.*.*x", "may take for ever"),
        ("a{1,}b{,9}c*d+", "may take for ever"),
    ],
)
def test_a_pattern_that_could_stall_the_watcher_is_refused(pattern: str, says: str) -> None:
    with pytest.raises(PolicyErrors, match=says):
        load(SIGNAL.format(pattern), "p")


@pytest.mark.parametrize("pattern", [r"Xid\d+\(.*\)*", "(a|b)?c.*", r"a\*\+\*\+x", "A[0-9]{2}.+"])
def test_a_pattern_that_ends_soon_is_accepted(pattern: str) -> None:
    load(SIGNAL.format(pattern), "p")


def test_the_same_fault_said_twice_is_one_fault_with_the_earlier_sight() -> None:
    ours = replace(LOST, part=HOST)
    report = read(node(own(ConditionType.GPU, ours), accelerated("NvidiaXID79Error")))
    assert report.faults == (ours,)


def test_labels_name_the_scopes_and_the_first_label_counts() -> None:
    labels = {
        "karpenter.sh/nodepool": "k",
        "gpumend.io/pool": "p",
        "topology.kubernetes.io/rack": "",
        "nvidia.com/gpu.clique": "q",
        "example.org/row": "7",
        "other": "x",
    }
    policy = load("budgets: [{scope: 'label:example.org/row', max: 1}]\n", "p")
    assert scopes_of(node(labels=labels), policy) == {
        "cluster": "c",
        "pool": "p",
        "nvlink-domain": "q",
        "label:example.org/row": "7",
    }
