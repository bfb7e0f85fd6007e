"""Pods: their defaults, how they go, and evictions by the decision table."""

import pytest

from tests.contract.client import STRATEGIC, causes, refusal
from tests.contract.conftest import unique

VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."


class Pods:
    """Pods and budgets of one namespace."""

    def __init__(self, api, namespace):
        self.api = api
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"

    async def make(self, name="p", node="n1", phase="Running", ready=True, **meta):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        if node:
            spec["nodeName"] = node
        body = {"metadata": {"name": name, "labels": {"app": "x"}, **meta}, "spec": spec}
        made = await self.api.created(self.path, body)
        if phase == "Pending":
            return made
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"status": {"phase": phase, "conditions": conditions}}
        answer = await self.api.patch(f"{self.path}/{name}/status", status, STRATEGIC)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def budget(self, name="b", allowed=0, healthy=1, desired=1, observed=True, **spec):
        selector = {"matchLabels": {"app": "x"}}
        body = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector}}
        body["spec"] |= spec
        await self.api.created(self.budgets, body)
        counts = {"disruptionsAllowed": allowed, "currentHealthy": healthy}
        counts |= {"desiredHealthy": desired, "expectedPods": 1}
        if observed:
            counts["observedGeneration"] = 1
        answer = await self.api.patch(f"{self.budgets}/{name}/status", {"status": counts})
        assert answer.status_code == 200, answer.text

    async def evict(self, name="p", **arguments):
        options = arguments.pop("options", None)
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        if options:
            body["deleteOptions"] = options
        return await self.api.post(f"{self.path}/{name}/eviction", body, **arguments)

    async def read(self, name="p"):
        return await self.api.read(f"{self.path}/{name}")

    async def gone(self, name="p"):
        return (await self.api.get(f"{self.path}/{name}")).status_code == 404

    async def delete(self, name="p", options=None, **query):
        return await self.api.delete(f"{self.path}/{name}", options, **query)


@pytest.fixture
def pods(api, namespace):
    return Pods(api, namespace)


async def test_a_new_pod_has_its_defaults(pods):
    made = await pods.make(phase="Pending")
    assert made["status"]["phase"] == "Pending"
    assert made["status"]["qosClass"] == "BestEffort"
    assert made["metadata"]["generation"] == 1
    spec = made["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["containers"][0]["terminationMessagePath"] == "/dev/termination-log"
    assert spec["containers"][0]["terminationMessagePolicy"] == "File"
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert sorted((t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]) == [
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    ]


async def test_a_pod_that_tolerates_everything_gets_no_more_tolerations(pods):
    spec = {"containers": [{"name": "c", "image": "i:1"}], "tolerations": [{"operator": "Exists"}]}
    made = await pods.api.created(pods.path, {"metadata": {"name": "p"}, "spec": spec})
    assert made["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert made["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


async def test_a_pod_without_containers_is_refused(pods):
    answer = await pods.api.post(pods.path, {"metadata": {"name": "p"}, "spec": {}})
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["field"] == "spec.containers"


async def test_a_container_without_an_image_is_refused(pods):
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    answer = await pods.api.post(pods.path, body)
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["field"] == "spec.containers[0].image"


async def test_what_a_pod_is_can_not_be_changed(pods):
    await pods.make(node="")
    for change in ({"nodeName": "n2"}, {"restartPolicy": "Never"}):
        answer = await pods.api.patch(f"{pods.path}/p", {"spec": change})
        assert refusal(answer) == (422, "Invalid")
        assert causes(answer)[0]["reason"] == "FieldValueForbidden"


async def test_a_toleration_may_be_added_but_not_taken_away(pods):
    made = await pods.make()
    more = [*made["spec"]["tolerations"], {"key": "x", "operator": "Exists"}]
    answer = await pods.api.patch(f"{pods.path}/p", {"spec": {"tolerations": more}})
    assert answer.status_code == 200
    answer = await pods.api.patch(f"{pods.path}/p", {"spec": {"tolerations": []}})
    assert refusal(answer) == (422, "Invalid")


async def test_status_is_not_written_with_the_pod_nor_the_pod_with_its_status(pods):
    await pods.make(phase="Pending")
    answer = await pods.api.patch(f"{pods.path}/p", {"status": {"phase": "Running"}})
    assert answer.json()["status"]["phase"] == "Pending"
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    meta = {"labels": {"y": "1"}, "ownerReferences": [owner]}
    body = {"metadata": meta, "spec": {"restartPolicy": "Never"}, "status": {"phase": "Running"}}
    answer = await pods.api.patch(f"{pods.path}/p/status", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"]["phase"] == "Running"
    assert answer.json()["spec"]["restartPolicy"] == "Always"
    assert answer.json()["metadata"]["labels"]["y"] == "1"
    assert "ownerReferences" not in answer.json()["metadata"]


async def test_a_termination_message_is_kept(pods):
    await pods.make(phase="Pending")
    ended = {"exitCode": 0, "message": "verdict=ok", "reason": "Completed"}
    status = {"name": "c", "ready": False, "restartCount": 0, "image": "i", "imageID": ""}
    status["state"] = {"terminated": ended}
    body = {"status": {"phase": "Succeeded", "containerStatuses": [status]}}
    answer = await pods.api.patch(f"{pods.path}/p/status", body, STRATEGIC)
    assert answer.status_code == 200, answer.text
    found = answer.json()["status"]["containerStatuses"][0]["state"]["terminated"]
    assert found["message"] == "verdict=ok"


async def test_a_bound_pod_waits_for_its_kubelet(pods):
    await pods.make()
    answer = await pods.delete()
    assert answer.status_code == 200
    meta = answer.json()["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 30
    assert "deletionTimestamp" in meta
    assert not await pods.gone()
    kubelet = await pods.delete(options={"gracePeriodSeconds": 0})
    assert kubelet.status_code == 200
    assert kubelet.json()["kind"] == "Pod"
    assert await pods.gone()


async def test_a_grace_period_can_only_be_shortened(pods):
    await pods.make()
    first = (await pods.delete(options={"gracePeriodSeconds": 20})).json()["metadata"]
    longer = (await pods.delete(options={"gracePeriodSeconds": 40})).json()["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 20
    assert longer["deletionTimestamp"] == first["deletionTimestamp"]
    shorter = (await pods.delete(options={"gracePeriodSeconds": 5})).json()["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    assert shorter["deletionTimestamp"] < first["deletionTimestamp"]


async def test_a_negative_grace_period_means_one_second(pods):
    await pods.make()
    answer = await pods.delete(options={"gracePeriodSeconds": -5})
    assert answer.json()["metadata"]["deletionGracePeriodSeconds"] == 1


async def test_an_unbound_pod_goes_at_once(pods):
    await pods.make(node="", phase="Pending")
    await pods.delete()
    assert await pods.gone()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_goes_at_once(pods, phase):
    await pods.make(phase=phase)
    await pods.delete()
    assert await pods.gone()


async def test_a_delete_for_another_uid_conflicts(pods):
    made = await pods.make()
    answer = await pods.delete(options={"preconditions": {"uid": "other"}})
    assert refusal(answer) == (409, "Conflict")
    assert made["metadata"]["uid"] in answer.json()["message"]
    answer = await pods.delete(options={"preconditions": {"resourceVersion": "1"}})
    assert refusal(answer) == (409, "Conflict")
    answer = await pods.delete(options={"preconditions": {"uid": made["metadata"]["uid"]}})
    assert answer.status_code == 200


async def test_finalizers_keep_an_object_until_they_are_gone(pods):
    await pods.make(node="", phase="Pending", finalizers=["example.org/hold"])
    answer = await pods.delete()
    assert answer.json()["metadata"]["deletionTimestamp"]
    assert not await pods.gone()
    await pods.api.patch(f"{pods.path}/p", {"metadata": {"finalizers": None}})
    assert await pods.gone()


async def test_a_node_with_a_finalizer_stays_until_it_is_taken_off(api):
    name = unique("n")
    meta = {"name": name, "finalizers": ["example.org/hold"]}
    await api.created("/api/v1/nodes", {"metadata": meta})
    answer = await api.delete(f"/api/v1/nodes/{name}")
    assert answer.json()["metadata"]["deletionTimestamp"]
    await api.patch(f"/api/v1/nodes/{name}", {"metadata": {"finalizers": []}})
    assert (await api.get(f"/api/v1/nodes/{name}")).status_code == 404


async def test_an_eviction_without_a_budget_deletes_gracefully(pods):
    await pods.make()
    answer = await pods.evict()
    assert answer.status_code == 201
    assert answer.json()["status"] == "Success"
    pod = await pods.read()
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    targets = [c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert [(c["status"], c["reason"]) for c in targets] == [("True", "EvictionByEvictionAPI")]


async def test_an_eviction_of_a_pod_that_is_gone_is_not_found(pods):
    assert refusal(await pods.evict()) == (404, "NotFound")


async def test_an_eviction_for_another_uid_conflicts_and_evicts_nothing(pods):
    await pods.make()
    answer = await pods.evict(options={"preconditions": {"uid": "other"}})
    assert refusal(answer) == (409, "Conflict")
    assert "deletionTimestamp" not in (await pods.read())["metadata"]


async def test_an_eviction_with_the_right_uid_and_version_goes_through(pods):
    made = await pods.make()
    wanted = {key: made["metadata"][key] for key in ("uid", "resourceVersion")}
    answer = await pods.evict(options={"preconditions": wanted})
    assert answer.status_code == 201


async def test_a_budget_that_allows_nothing_blocks_without_a_hint(pods):
    await pods.make()
    await pods.budget()
    answer = await pods.evict()
    assert refusal(answer) == (429, "TooManyRequests")
    assert "Retry-After" not in answer.headers
    assert "retryAfterSeconds" not in answer.json()["details"]
    assert answer.json()["message"] == VIOLATION
    text = "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert causes(answer) == [{"reason": "DisruptionBudget", "message": text}]


async def test_a_budget_that_is_not_up_to_date_asks_to_come_back(pods):
    await pods.make()
    await pods.budget(observed=False)
    answer = await pods.evict()
    assert refusal(answer) == (429, "TooManyRequests")
    assert answer.headers["Retry-After"] == "10"
    assert answer.json()["details"]["retryAfterSeconds"] == 10
    text = "The disruption budget b is still being processed by the server."
    assert causes(answer) == [{"reason": "DisruptionBudget", "message": text}]


async def test_an_allowed_eviction_uses_up_the_allowance(pods):
    await pods.make()
    await pods.budget(allowed=1, healthy=2)
    assert (await pods.evict()).status_code == 201
    status = (await pods.api.read(f"{pods.budgets}/b"))["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["p"]
    told = [c for c in status["conditions"] if c["type"] == "DisruptionAllowed"]
    assert [(c["status"], c["reason"]) for c in told] == [("False", "InsufficientPods")]


async def test_an_eviction_that_conflicts_has_used_up_the_allowance_all_the_same(pods):
    await pods.make()
    await pods.budget(allowed=1, healthy=2)
    answer = await pods.evict(options={"preconditions": {"uid": "other"}})
    assert refusal(answer) == (409, "Conflict")
    assert (await pods.api.read(f"{pods.budgets}/b"))["status"]["disruptionsAllowed"] == 0


async def test_a_dry_run_asks_the_budget_and_uses_nothing_up(pods):
    await pods.make()
    await pods.budget(allowed=1, healthy=2)
    assert (await pods.evict(dryRun="All")).status_code == 201
    assert "deletionTimestamp" not in (await pods.read())["metadata"]
    assert (await pods.api.read(f"{pods.budgets}/b"))["status"]["disruptionsAllowed"] == 1
    await pods.api.patch(f"{pods.budgets}/b/status", {"status": {"disruptionsAllowed": 0}})
    assert refusal(await pods.evict(dryRun="All")) == (429, "TooManyRequests")


async def test_two_budgets_are_an_error_of_the_server(pods):
    await pods.make()
    await pods.budget(name="b1", allowed=1)
    await pods.budget(name="b2", allowed=1)
    answer = await pods.evict()
    assert refusal(answer) == (500, "")
    assert "more than one PodDisruptionBudget" in answer.json()["message"]


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_a_pod_that_does_not_run_is_evicted_past_its_budget(pods, phase):
    await pods.make(phase=phase)
    await pods.budget()
    assert (await pods.evict()).status_code == 201


async def test_a_pod_on_its_way_out_is_evicted_past_its_budget(pods):
    await pods.make()
    await pods.delete()
    await pods.budget()
    assert (await pods.evict()).status_code == 201


async def test_an_unready_pod_goes_free_of_charge_while_the_budget_is_met(pods):
    await pods.make(ready=False)
    await pods.budget(allowed=0, healthy=1, desired=1)
    assert (await pods.evict()).status_code == 201
    assert "disruptedPods" not in (await pods.api.read(f"{pods.budgets}/b"))["status"]


async def test_an_unready_pod_stays_while_the_budget_is_not_met(pods):
    await pods.make(ready=False)
    await pods.budget(allowed=0, healthy=0, desired=1)
    assert refusal(await pods.evict()) == (429, "TooManyRequests")


async def test_an_unready_pod_goes_if_the_budget_always_allows_it(pods):
    await pods.make(ready=False)
    await pods.budget(healthy=0, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert (await pods.evict()).status_code == 201


async def test_an_empty_selector_protects_every_pod_of_the_namespace(pods):
    await pods.make()
    await pods.budget(selector={})
    assert refusal(await pods.evict()) == (429, "TooManyRequests")


async def test_a_budget_of_other_pods_does_not_count(pods):
    await pods.make()
    await pods.budget(selector={"matchLabels": {"app": "other"}})
    assert (await pods.evict()).status_code == 201


async def test_expressions_of_a_budget_are_understood(pods):
    await pods.make()
    expressions = [
        {"key": "app", "operator": "In", "values": ["x", "y"]},
        {"key": "none", "operator": "DoesNotExist"},
    ]
    await pods.budget(selector={"matchExpressions": expressions})
    assert refusal(await pods.evict()) == (429, "TooManyRequests")


async def test_an_eviction_must_name_its_pod(pods):
    await pods.make()
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}
    answer = await pods.api.post(f"{pods.path}/p/eviction", body)
    assert refusal(answer) == (400, "BadRequest")


async def test_a_new_budget_allows_nothing_and_has_seen_nothing(pods):
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    made = await pods.api.created(pods.budgets, {"metadata": {"name": "b"}, "spec": spec})
    assert made["status"]["disruptionsAllowed"] == 0
    assert "observedGeneration" not in made["status"]
    answer = await pods.api.patch(f"{pods.budgets}/b", {"spec": {"minAvailable": 2}})
    assert answer.json()["metadata"]["generation"] == 2
