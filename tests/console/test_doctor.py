"""What the doctor calls right and wrong, and the command that it gives for each wrong."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from activities.adapters.temporal_facts import KINDS, QUEUES, TemporalFacts
from activities.search_attributes import TYPES
from console import doctor
from console.doctor import of_kubernetes, of_temporal
from console.doctor.item import Item, State
from console.doctor.neighbours import controllers, daemon_sets
from console.doctor.of_kubernetes import KubernetesFacts
from console.doctor.rights import Account, Answer, Right, shipped
from fleet.mark import MarkState
from fleet.names import agent_lease
from tests.cluster import cluster_in, mark, seen_node

NOW = datetime(2026, 11, 29, 13, tzinfo=UTC)
MONTH = timedelta(days=30)
POLLERS = {f"{queue} {kind}": 1 for queue in QUEUES for kind in KINDS}
WELL = TemporalFacts(
    "gpumend", "1.32.0", MONTH, dict.fromkeys(TYPES, 0) | dict(TYPES), POLLERS, True, 0
)


def wrongs(items):
    return {each.subject: each for each in items if each.state is State.WRONG}


def test_a_namespace_that_is_fit_has_nothing_to_mend():
    assert {each.state for each in of_temporal.judge(WELL, MONTH)} == {State.OK}


@pytest.mark.parametrize(
    ("changes", "subject", "mend"),
    [
        (
            {"retention": None},
            "temporal namespace",
            "temporal operator namespace create --namespace gpumend --retention 720h",
        ),
        (
            {"retention": timedelta(days=3)},
            "temporal namespace",
            "temporal operator namespace update --namespace gpumend --retention 720h",
        ),
        (
            {"attributes": {k: v for k, v in TYPES.items() if k != "DueAt"}},
            "search attributes",
            "temporal operator search-attribute create --name DueAt --type Datetime"
            " --namespace gpumend",
        ),
        (
            {"attributes": {**TYPES, "DueAt": 2}},
            "search attributes",
            "use another namespace than gpumend: a type cannot be changed",
        ),
        (
            {"pollers": {**POLLERS, "gpumend-budget activities": 0}},
            "queue gpumend-budget activities",
            of_temporal.START_WORKERS,
        ),
        (
            {"stuck": 2},
            "stuck runs",
            "temporal workflow list --namespace gpumend"
            ' --query "TemporalReportedProblems IS NOT NULL"',
        ),
    ],
)
def test_each_thing_that_is_wrong_with_temporal_has_its_command(changes, subject, mend):
    found = wrongs(of_temporal.judge(replace(WELL, **changes), MONTH))
    assert {name: each.mend for name, each in found.items()} == {subject: mend}


@pytest.mark.parametrize(
    ("found", "wanted", "state", "says"),
    [
        ({}, False, State.OK, "none"),
        ({}, True, State.WRONG, "there is no schedule {}"),
        ({"sweep/c": "", "pairs/c": ""}, True, State.OK, "schedule {} is on"),
        (dict.fromkeys(("sweep/c", "pairs/c"), "ada: holidays"), True, State.NOTE, "ada: holidays"),
    ],
)
@pytest.mark.parametrize("kind", [of_temporal.SWEEPS, of_temporal.PAIRS])
def test_a_policy_that_proves_idle_nodes_needs_its_schedule(kind, found, wanted, state, says):
    items = of_temporal.judge(
        replace(WELL, schedules=found), MONTH, "c", {kind} if wanted else set()
    )
    item = next(each for each in items if each.subject == kind)
    says = says.format("sweep/c" if kind == of_temporal.SWEEPS else "pairs/c")
    assert item.state is state
    assert says in item.says
    assert bool(item.mend) is (state is not State.OK)


def test_what_a_server_cannot_tell_is_unknown_and_not_wrong():
    items = [*of_temporal.judge(replace(WELL, stuck=None, budget=False), MONTH)]
    assert [each.subject for each in items if each.state is State.UNKNOWN] == ["stuck runs"]
    assert doctor.status_of(items) == 0


def a_node(name="n1", **about):
    _, node = seen_node(**{"marked": None, "taints": [], "faults": (), "name": name, **about})
    return node


LEASES = {agent_lease("n1"): NOW - timedelta(minutes=2), "watcher": NOW - timedelta(seconds=3)}
RIGHT = Right("patch", "", "nodes")
WATCHER = Account("system:serviceaccount:gpumend:watcher", "engine-rbac.yaml", (RIGHT,))
FINE = KubernetesFacts(
    version="v1.37.2",
    user="admin",
    namespace=True,
    part_key=True,
    fence=True,
    nodes=(a_node(),),
    leases=LEASES,
    sets=(),
    deployments=(),
    kinds=(),
    rights=(Answer(WATCHER, ()),),
    breakers={},
)


def test_a_cluster_that_is_fit_has_nothing_to_mend():
    assert {each.state for each in of_kubernetes.judge(FINE, NOW)} == {State.OK}


@pytest.mark.parametrize(
    ("changes", "subject", "mend"),
    [
        ({"namespace": False}, "namespace", "kubectl apply -f deploy/engine-rbac.yaml"),
        ({"fence": False}, "agent fence", "kubectl apply -f deploy/agent-rbac.yaml"),
        ({"part_key": False}, "part key", "kubectl -n gpumend create secret generic"),
        (
            {"rights": (Answer(WATCHER, (RIGHT,)),)},
            "rights of watcher",
            "kubectl apply -f deploy/engine-rbac.yaml",
        ),
        ({"leases": {"watcher": NOW}}, "agents", "kubectl apply -f deploy/agent.yaml"),
        (
            {"leases": {**LEASES, agent_lease("n1"): NOW - timedelta(minutes=7)}},
            "agents",
            "kubectl -n gpumend get pods -o wide",
        ),
        (
            {"leases": {**LEASES, "watcher": NOW - timedelta(minutes=2)}},
            "watcher",
            "kubectl -n gpumend get pods -l app=gpumend-watcher",
        ),
        (
            {"nodes": (a_node(marked=mark(MarkState.PENDING)),)},
            "holds",
            "kubectl -n gpumend logs deploy/watcher",
        ),
        (
            {"nodes": (replace(a_node(), mark_problem="not an incident mark"),)},
            "marks",
            "kubectl get node n1 -o yaml",
        ),
        (
            {"breakers": {"pool/training": "40% are sick"}},
            "breaker pool/training",
            "gpumend close-breaker pool/training",
        ),
    ],
)
def test_each_thing_that_is_wrong_with_the_cluster_has_its_command(changes, subject, mend):
    found = wrongs(of_kubernetes.judge(replace(FINE, **changes), NOW))
    assert list(found) == [subject]
    assert found[subject].mend.startswith(mend)


def test_what_we_may_not_look_at_is_unknown_and_not_wrong():
    blind = KubernetesFacts("v1.37.2", rights=(Answer(WATCHER, None),))
    states = {each.subject: each.state for each in of_kubernetes.judge(blind, NOW)}
    assert states.pop("kubernetes") is State.OK
    assert set(states.values()) == {State.UNKNOWN}


def test_a_cluster_without_gpus_is_worth_a_note():
    items = of_kubernetes.judge(replace(FINE, nodes=(a_node(gpus=0),)), NOW)
    assert [each.subject for each in items if each.state is State.NOTE] == ["agents"]


def workload(name, *, image="i", namespace="infra", tolerations=None, **spec):
    container = {"name": "c", "image": image, "env": spec.pop("env", [])}
    pod = {"containers": [container], **({"tolerations": tolerations} if tolerations else {})}
    meta = {"name": name, "namespace": namespace, **spec.pop("metadata", {})}
    return {"metadata": meta, "spec": {"template": {"spec": {**pod, **spec}}}}


PLUGIN = {"volumes": [{"hostPath": {"path": "/var/lib/kubelet/device-plugins/"}}]}
HOLD = {"key": "gpumend.io/hold", "operator": "Exists", "effect": "NoSchedule"}


def test_a_daemonset_that_a_new_node_waits_for_is_named_with_its_toleration():
    holds = [{"key": "gpumend.io/hold", "operator": "Exists"}]
    (found,) = daemon_sets([workload("p", tolerations=holds, **PLUGIN)])
    assert found.state is State.NOTE
    assert "gpumend.io/unproven" in found.mend
    both = [*holds, {"key": "gpumend.io/unproven", "operator": "Exists"}]
    (found,) = daemon_sets([workload("p", tolerations=both, **PLUGIN)])
    assert found.state is State.OK


@pytest.mark.parametrize(
    ("daemon_set", "is_wrong"),
    [
        (workload("plugin", **PLUGIN), True),
        (workload("nvidia-dcgm-exporter"), True),
        (workload("x", image="nvcr.io/nvidia/driver:580"), True),
        (workload("plugin", tolerations=[HOLD], **PLUGIN), False),
        (workload("plugin", tolerations=[{"operator": "Exists"}], **PLUGIN), False),
        (workload("plugin", tolerations=[{**HOLD, "effect": "NoExecute"}], **PLUGIN), True),
        (workload("plugin", tolerations=[{**HOLD, "operator": "Equal"}], **PLUGIN), True),
        (workload("plugin", tolerations=[{**HOLD, "key": "other"}], **PLUGIN), True),
        (workload("fluent-bit"), False),
    ],
)
def test_daemonsets_that_gpus_need_must_tolerate_the_hold(daemon_set, is_wrong):
    assert bool(wrongs(daemon_sets([daemon_set]))) is is_wrong


def test_the_command_adds_a_toleration_to_those_that_are_there():
    (first,) = wrongs(daemon_sets([workload("plugin", **PLUGIN)])).values()
    assert '"path": "/spec/template/spec/tolerations", "value": [{' in first.mend
    others = [{"key": "other", "operator": "Exists"}]
    (second,) = wrongs(daemon_sets([workload("p", tolerations=others, **PLUGIN)])).values()
    assert '"path": "/spec/template/spec/tolerations/-", "value": {' in second.mend


def test_what_the_gpu_operator_manages_is_told_to_the_gpu_operator():
    owner = {"ownerReferences": [{"kind": "ClusterPolicy", "name": "cluster-policy"}]}
    (found,) = wrongs(daemon_sets([workload("nvidia-x", metadata=owner)])).values()
    assert found.mend.startswith("kubectl patch clusterpolicy cluster-policy --type merge")


def test_karpenters_own_repair_is_wrong_and_karpenter_alone_is_not():
    gates = [{"name": "FEATURE_GATES", "value": "SpotToSpot=true, NodeRepair=true"}]
    karpenter = workload("karpenter", image="karpenter:1.15.0@sha256:0", env=gates)
    (found,) = wrongs(controllers([karpenter], ())).values()
    assert found.mend == (
        "kubectl -n infra set env deployment/karpenter"
        " FEATURE_GATES=SpotToSpot=true,NodeRepair=false"
    )
    (fine,) = controllers([workload("karpenter", image="karpenter:1.15.0")], ())
    assert (fine.state, fine.says) == (
        State.OK,
        "infra/karpenter 1.15.0: its own node repair is off",
    )


def test_other_controllers_are_named():
    works = [workload(name) for name in ("cluster-autoscaler", "gpu-operator", "kured", "web")]
    items = [*controllers(works, ("nodehealthchecks.remediation.medik8s.io",))]
    assert [each.subject for each in items] == [
        "cluster-autoscaler",
        "gpu-operator",
        "kured",
        "medik8s",
    ]
    assert list(wrongs(items)) == ["medik8s"]


def test_the_manifests_say_what_each_account_needs():
    accounts = {each.user.rpartition(":")[2]: each for each in shipped()}
    assert set(accounts) == {"watcher", "worker", "gpumend-agent"}
    assert Right("patch", "", "nodes") in accounts["watcher"].needs
    assert Right("create", "", "pods/eviction") in accounts["worker"].needs
    assert Right("create", "", "pods", "gpumend") in accounts["worker"].needs
    assert Right("create", "", "pods") not in accounts["worker"].needs


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ([State.OK, State.NOTE, State.UNKNOWN], 0),
        ([State.OK, State.WRONG], 1),
        ([State.WRONG, State.AWAY], 3),
    ],
)
def test_the_exit_status_is_that_of_the_worst(states, status):
    assert doctor.status_of([Item("x", each, "") for each in states]) == status


async def test_with_both_servers_away_both_are_said_and_nothing_is_judged(command):
    ended = await command("doctor", "--json")
    assert ended.status == 3
    assert [(each["subject"], each["state"]) for each in ended.json] == [
        ("temporal", "away"),
        ("kubernetes", "away"),
    ]


async def test_an_empty_cluster_is_told_what_is_missing(command, tmp_path, monkeypatch):
    async with cluster_in(tmp_path, kubelet=False):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        ended = await command("doctor", "--json")
        found = {each["subject"]: each for each in ended.json}
        assert found["kubernetes"]["says"].endswith("you are admin")
        wrong = {name for name, each in found.items() if each["state"] == "wrong"}
        assert {"part key", "watcher", "agent fence", "rights of worker"} <= wrong
        assert all(found[name]["mend"] for name in wrong)


async def test_a_policy_that_is_broken_is_said_among_the_rest(command, tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text("limit: {}\n")
    ended = await command("doctor", "--policy", str(file), "--json")
    (policy,) = [each for each in ended.json if each["subject"] == "policy"]
    assert policy["mend"] == f"gpumend policy check {file}"


@pytest.mark.parametrize(
    ("variables", "state"),
    [
        ({"GPUMEND_PROVIDER_URL": "nowhere"}, "wrong"),
        ({"GPUMEND_PROVIDER_URL": "http://127.0.0.1:1"}, "away"),
    ],
)
async def test_a_provider_that_is_configured_here_is_asked(command, monkeypatch, variables, state):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ended = await command("doctor", "--json")
    assert [e["state"] for e in ended.json if e["subject"] == "provider"] == [state]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_real_namespace_is_read(server, command, at_temporal):
    at_temporal(server)
    ended = await command("doctor", "--json")
    found = {each["subject"]: each for each in ended.json}
    assert found["search attributes"]["state"] == "ok"
    assert found["temporal namespace"]["mend"].startswith("temporal operator namespace update")
    assert found["queue gpumend activities"]["state"] == "wrong"
    assert found["disruption budget"]["state"] == "note"
