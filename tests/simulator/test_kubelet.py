"""What the engine may rely on in our kubelets, since it holds for a real one."""

import asyncio
import subprocess
from datetime import UTC, datetime

from simulator.controllers.lifecycle import stale
from simulator.hardware.nature import LOST
from simulator.hardware.power import Power, Signal
from simulator.kubelet.node import LEASES
from tests.simulator.conftest import PATIENCE, PODS, python, shell

WORKLOAD = {
    "restartPolicy": "Always",
    "volumes": [],
    "containers": [
        {"name": "main", "image": "w", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    ],
}


def phase(*wanted):
    return lambda pod: (pod.get("status") or {}).get("phase") in wanted


def terminated(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


def ready(node, status="True"):
    conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    return conditions["Ready"] == status


async def test_a_node_says_who_it_is_and_renews_its_lease(stage):
    node = await stage.node()
    assert ready(node)
    assert node["spec"]["providerID"] == "sim://node-1"
    assert node["status"]["nodeInfo"]["bootID"] == stage.machine.boot_id
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"
    first = (await stage.until(lease, lambda _: True))["spec"]["renewTime"]
    await stage.until(lease, lambda found: found["spec"]["renewTime"] > first)


async def test_a_living_kubelet_takes_back_what_others_said_of_its_readiness(stage):
    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    path = "/api/v1/nodes/node-1"
    await stage.api.patch(f"{path}/status", {"status": {"conditions": [unknown]}})
    await stage.until(path, ready)


async def test_a_command_runs_on_the_machine_and_its_message_and_exit_code_are_told(stage):
    script = (
        "import sys; open(sys.argv[1]).read(); open(sys.argv[2], 'w').write('x' * 5000)"
        "; sys.exit(2)"
    )
    boot_id = "/host/proc/sys/kernel/random/boot_id"
    container = python(script, boot_id, "/dev/termination-log")
    await stage.pod("step-1", containers=[container])
    pod = await stage.until(f"{PODS}/step-1", phase("Failed", "Succeeded"))
    assert pod["status"]["phase"] == "Failed"
    assert terminated(pod)["exitCode"] == 2
    assert terminated(pod)["message"] == "x" * 4096


async def test_a_command_that_ends_well_succeeds_and_sees_no_secrets_of_ours(stage, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/secret")
    await stage.pod("step-1", containers=[shell('test -z "$KUBECONFIG$GPUMEND_HOST_EXEC"')])
    await stage.until(f"{PODS}/step-1", phase("Succeeded"))


async def test_a_pod_that_outlives_its_deadline_fails_by_it_and_its_process_is_gone(stage):
    mark = "sleep 61.7"
    await stage.pod("step-1", activeDeadlineSeconds=1, containers=[shell(mark)])
    pod = await stage.until(f"{PODS}/step-1", phase("Failed"))
    assert pod["status"]["reason"] == "DeadlineExceeded"
    assert not running(mark)


async def test_a_deleted_pod_gets_its_grace_and_then_goes(stage):
    said = stage.machine.root / "said"
    script = f"trap 'echo bye > {said}; exit 0' TERM; sleep 60 & wait"
    pod = await stage.pod("step-1", containers=[shell(script)])
    await stage.until(f"{PODS}/step-1", phase("Running"))
    await asyncio.sleep(0.2)  # until the shell has set its trap
    await stage.api.delete(f"{PODS}/step-1", pod["metadata"]["uid"])
    await stage.gone(f"{PODS}/step-1")
    assert said.read_text() == "bye\n"


async def test_a_container_that_cannot_start_says_so(stage):
    await stage.pod("step-1", containers=[shell("") | {"command": ["/no/such/program"]}])
    pod = await stage.until(f"{PODS}/step-1", phase("Failed"))
    assert terminated(pod)["reason"] == "StartError"


async def test_a_workload_is_a_state_that_holds_its_gpus_until_it_is_gone(stage):
    pod = await stage.pod("train-0", **WORKLOAD)
    await stage.until(f"{PODS}/train-0", phase("Running"))
    assert list(stage.machine.read().holders.values()) == [(0, 1)]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "train-0"},
        "deleteOptions": {"preconditions": {"uid": pod["metadata"]["uid"]}},
    }
    await stage.api.create(f"{PODS}/train-0/eviction", body)
    await stage.gone(f"{PODS}/train-0")
    assert stage.machine.read().holders == {}


async def test_a_reboot_ends_what_ran_and_starts_what_should_run_again(stage):
    stage.machine.strike(3, LOST)
    before = stage.machine.boot_id
    await stage.pod("train-0", **WORKLOAD)
    await stage.until(f"{PODS}/train-0", phase("Running"))
    command = "/host/usr/bin/systemctl"
    script = (
        "import subprocess, sys, time; subprocess.run([sys.argv[1], 'reboot']); time.sleep(62.3)"
    )
    await stage.pod("step-1", containers=[python(script, command)])
    pod = await stage.until(f"{PODS}/step-1", phase("Failed"))
    assert terminated(pod)["reason"] == "ContainerStatusUnknown"
    assert stage.machine.boot_id != before
    node = await stage.until("/api/v1/nodes/node-1", ready)
    assert node["status"]["nodeInfo"]["bootID"] == stage.machine.boot_id
    assert not stage.machine.read().gpus[3].symptoms.lost

    def restarted(pod):
        return pod["status"]["containerStatuses"][0]["restartCount"] == 1

    await stage.until(f"{PODS}/train-0", restarted)
    assert not running("62.3")


async def test_a_second_request_to_reboot_while_it_is_dark_is_not_a_second_boot(stage):
    before = stage.machine.boot_id
    stage.machine.power.ask(Signal.REBOOT)
    stage.machine.power.ask(Signal.REBOOT)

    def back(node):
        return ready(node) and node["status"]["nodeInfo"]["bootID"] != before

    await stage.until("/api/v1/nodes/node-1", back)
    assert stage.machine.read().boots == 2


async def test_a_machine_whose_power_is_cut_stays_off_until_it_is_switched_on(stage):
    before = stage.machine.boot_id
    stage.machine.power.ask(Signal.CUT)
    await power(stage, Power.OFF)
    stage.machine.power.ask(Signal.START)
    await power(stage, Power.ON)
    assert stage.machine.boot_id != before


async def test_a_machine_that_is_given_back_is_gone_once_it_is_off(stage):
    stage.machine.power.give_back()
    await power(stage, Power.GONE)


async def test_a_kubelet_that_died_says_nothing_while_its_containers_run_until_a_power_cycle(stage):
    await stage.pod("step", containers=[python("import time; time.sleep(63.4)")])
    await stage.until(f"{PODS}/step", phase("Running"))
    stage.machine.power.ask(Signal.FAINT)
    lease = await stage.api.get(LEASE)
    await silent(stage, lease)
    assert running("63.4")
    stage.machine.power.ask(Signal.CYCLE)
    await stage.until(LEASE, lambda found: found["spec"] != lease["spec"])
    assert not running("63.4")


LEASE = f"{LEASES}/node-1"


async def silent(stage, lease):
    """The Lease grows older than it lasts, as nobody renews it."""
    async with asyncio.timeout(PATIENCE):
        while not stale(lease, datetime.now(UTC)):
            lease = await stage.api.get(LEASE)
            await asyncio.sleep(0.05)


async def power(stage, wanted):
    async with asyncio.timeout(PATIENCE):
        while True:
            if stage.machine.power.state is wanted:
                return
            await asyncio.sleep(0.02)


async def test_an_agent_like_pod_gets_a_token_of_its_own_account_and_is_started_again(stage):
    accounts = "/api/v1/namespaces/gpumend/serviceaccounts"
    await stage.api.create(accounts, {"metadata": {"name": "agent"}})
    script = "import sys; assert open(sys.argv[1]).read(); sys.exit(1)"
    container = python(script, "/account/token")
    container["volumeMounts"].append({"name": "account", "mountPath": "/account"})
    token = {"serviceAccountToken": {"path": "token"}}
    host = {"name": "host", "hostPath": {"path": "/"}}
    await stage.pod(
        "agent-1",
        restartPolicy="Always",
        serviceAccountName="agent",
        containers=[container],
        volumes=[host, {"name": "account", "projected": {"sources": [token]}}],
    )

    def twice(pod):
        found = (pod.get("status") or {}).get("containerStatuses") or [{}]
        return found[0].get("restartCount", 0) >= 1

    await stage.until(f"{PODS}/agent-1", twice)


def running(text):
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return any(text in line and "ps -eo" not in line for line in found.stdout.splitlines())
