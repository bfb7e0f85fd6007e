"""What exactly is written to a node."""

from fleet.mark import MarkState, format_mark
from fleet.node import Taint
from intake.node_patch import cool_down_patch, hold_patch, mark_patch, withdraw_patch
from tests.intake.cases import FOREIGN, HOLD, NOW, a_mark, a_node

GUARDS = {"uid": "u1", "resourceVersion": "7"}
MARK = a_mark()
HELD = {"gpumend.io/incident": format_mark(MARK)}
OURS = {"key": "gpumend.io/hold", "value": "gpu-lost", "effect": "NoSchedule"}
THEIRS = {"key": "team", "value": "x", "effect": "NoSchedule"}


def test_a_hold_is_taint_and_mark_in_one_patch_guarded_by_uid_and_version():
    assert hold_patch(a_node(), MARK, "gpu-lost") == {
        "metadata": {**GUARDS, "annotations": HELD},
        "spec": {"taints": [OURS]},
    }


def test_taints_of_others_are_written_back_in_full():
    gone = Taint("node.kubernetes.io/unreachable", "", "NoExecute", "2026-11-29T11:00:00Z")
    patch = hold_patch(a_node(taints=[FOREIGN, gone]), MARK, "gpu-lost")
    assert patch["spec"]["taints"] == [
        THEIRS,
        {"key": gone.key, "effect": "NoExecute", "timeAdded": "2026-11-29T11:00:00Z"},
        OURS,
    ]


def test_a_hold_that_is_there_is_not_put_again():
    assert "spec" not in hold_patch(a_node(taints=[HOLD]), MARK, "gpu-lost")


def test_a_hold_ends_an_old_cool_down():
    patch = hold_patch(a_node(cool_down=NOW), MARK, "gpu-lost")
    assert patch["metadata"]["annotations"] == {**HELD, "gpumend.io/cool-down": None}


def test_a_mark_changes_without_touching_taints():
    owned = a_mark(MarkState.OWNED)
    assert mark_patch(a_node(MARK, [HOLD]), owned) == {
        "metadata": {**GUARDS, "annotations": {"gpumend.io/incident": format_mark(owned)}}
    }


def test_taking_a_hold_back_leaves_the_taints_of_others():
    patch = withdraw_patch(a_node(MARK, [FOREIGN, HOLD], unschedulable=True))
    assert patch["spec"] == {"taints": [THEIRS]}
    assert patch["metadata"] == {**GUARDS, "annotations": {"gpumend.io/incident": None}}
    assert withdraw_patch(a_node(MARK, [HOLD]))["spec"] == {"taints": None}


def test_a_cool_down_takes_a_mark_off_that_a_person_left():
    left = cool_down_patch(a_node(MARK), NOW)["metadata"]["annotations"]
    assert left == {"gpumend.io/cool-down": "2026-11-29T12:00:00Z", "gpumend.io/incident": None}
    assert "gpumend.io/incident" not in cool_down_patch(a_node(), NOW)["metadata"]["annotations"]
