"""The agent's manifest grants what the checks say that they read, and nothing that none needs.

What a check reads is in its own words (`probes/checks/about.py`). A word that this table does not
know fails here, like a right in the manifest that no word asks for.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.bench.probes_cost import AGENT_MIB, CHILD_MIB
from fleet.check import ACTIVE
from probes.checks.about import ABOUT

TEXT = (Path(__file__).parents[2] / "deploy/agent.yaml").read_text()
POD = yaml.safe_load(TEXT)["spec"]["template"]["spec"]
AGENT = POD["containers"][0]
PASSIVE = {name: about.reads for name, about in ABOUT.items() if name not in ACTIVE}

HOST_ROOT, DEVICES, NAMESPACES, HOST_PIDS, NOTHING = "host root", "devices", "nsenter", "pids", ""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "/dev/kmsg": (HOST_ROOT, DEVICES),
    "/sys/": (HOST_ROOT,),
    "/proc/": (HOST_ROOT,),
    "PCI": (HOST_ROOT,),
    "driver's list": (HOST_ROOT,),
    "NVML": (HOST_ROOT, DEVICES),
    "NVML's lists of processes": (HOST_PIDS,),
    "nvidia-smi": (NAMESPACES, HOST_PIDS),
    "dcgmi": (NAMESPACES, HOST_PIDS),
    "systemd": (HOST_ROOT,),
    "statvfs": (HOST_ROOT,),
    "kubelet": (HOST_ROOT,),
    "adjtimex": (NOTHING,),
}
"""What a word of `reads` needs of the Pod. Asking the clock needs nothing, setting it would."""
GRANTED: Mapping[str, Any] = {
    HOST_ROOT: {"name": "host", "hostPath": {"path": "/", "type": "Directory"}} in POD["volumes"],
    DEVICES: AGENT["securityContext"].get("privileged") is True,
    NAMESPACES: AGENT["securityContext"].get("privileged") is True,
    HOST_PIDS: POD.get("hostPID") is True,
    NOTHING: True,
}


def words(reads):
    return {word for word in NEEDS if word in reads}


@pytest.mark.parametrize("check", PASSIVE)
def test_what_a_check_reads_is_granted(check):
    named = words(PASSIVE[check])
    assert named, f"say in NEEDS what {check} needs to read: {PASSIVE[check]}"
    unknown = [
        path
        for path in re.findall(r"(?<![\w.])/[a-z]+/?\S*", PASSIVE[check])
        if not path.startswith(tuple(word for word in NEEDS if word.startswith("/")))
    ]
    assert unknown == []
    assert [need for word in named for need in NEEDS[word] if not GRANTED[need]] == []


def test_what_is_granted_is_needed_by_some_check():
    needed = {need for reads in PASSIVE.values() for word in words(reads) for need in NEEDS[word]}
    assert needed == set(GRANTED)
    assert set(NEEDS) == {word for reads in PASSIVE.values() for word in words(reads)}


def test_nothing_wider_is_asked_for():
    assert not POD.get("hostNetwork")
    assert not POD.get("hostIPC")
    assert set(AGENT["securityContext"]) == {"privileged", "readOnlyRootFilesystem"}
    assert AGENT["securityContext"]["readOnlyRootFilesystem"] is True
    assert len(POD["containers"]) == 1
    assert "initContainers" not in POD
    kinds = {each["name"]: next(iter(each.keys() - {"name"})) for each in POD["volumes"]}
    assert kinds == {"host": "hostPath", "state": "hostPath", "key": "secret"}


def test_only_the_agents_own_state_can_be_written():
    writable = [each["mountPath"] for each in AGENT["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/host/var/lib/gpumend"]
    host = next(each for each in AGENT["volumeMounts"] if each["name"] == "host")
    assert host["recursiveReadOnly"] == "IfPossible"
    assert "mountPropagation" not in host, "recursiveReadOnly is refused beside it"


@pytest.mark.parametrize(
    "line", ["hostPID: true", "privileged: true", "- name: host", "resources:"]
)
def test_what_is_granted_says_why(line):
    before = TEXT[: TEXT.index(line)].rstrip(" ").splitlines()[-1]
    assert before.strip().startswith("#")


def test_requests_and_limits_hold_what_was_measured():
    resources = AGENT["resources"]
    request, limit = (int(resources[each]["memory"][:-2]) for each in ("requests", "limits"))
    assert AGENT_MIB <= request <= AGENT_MIB + CHILD_MIB <= limit
    assert "cpu" not in resources["limits"]
    assert resources["requests"]["cpu"] == "10m"


def test_where_metrics_are_served_is_where_they_are_looked_for():
    (port,) = AGENT["ports"]
    given = {each["name"]: each.get("value") for each in AGENT["env"]}
    assert given["GPUMEND_METRICS_ADDRESS"] == f"0.0.0.0:{port['containerPort']}"
    told = yaml.safe_load(TEXT)["spec"]["template"]["metadata"]["annotations"]
    assert told["prometheus.io/port"] == str(port["containerPort"])
    monitor = yaml.safe_load(
        (Path(__file__).parents[2] / "deploy/agent-podmonitor.yaml").read_text()
    )
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == port["name"]
    labels = yaml.safe_load(TEXT)["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
