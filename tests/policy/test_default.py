"""The shipped policy agrees with the table of faults, and its promises are frozen."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from fleet.check import ACTIVE, Check
from fleet.fault import CONDITION_OF, FaultName
from fleet.step import REPAIRS, Step
from policies.document import default_policy
from policies.durations import format_duration, parse_duration
from policies.fault_terms import AfterDeadline, FaultTerms
from policies.schema import Policy
from probes.checks.about import ABOUT

DEFAULT = default_policy()
TABLE = (Path(__file__).parent / "faults.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and not line.startswith(("| fault", "| ---"))
]
TIME = re.compile(r"(\d+) ([mh])\b")


def as_duration(cell: str) -> timedelta:
    found = TIME.match(cell)
    return parse_duration(f"{found[1]}{found[2]}") if found else timedelta(0)


def test_the_table_has_every_fault_once() -> None:
    assert sorted(row[0] for row in ROWS) == sorted(FaultName)
    assert set(DEFAULT.faults) == set(FaultName)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_fault_agrees_with_its_row(row: list[str]) -> None:
    name, condition, _, stay, within, steps, _ = row
    fault, terms = FaultName(name), DEFAULT.fault(FaultName(name))
    assert condition == "-" or CONDITION_OF[fault].value == f"gpumend.io/{condition}"
    listed = [word.split(" ")[0] for word in steps.split(", ")]
    assert [each.value for each in terms.steps] == [each for each in listed if each in REPAIRS]
    assert terms.notify is (steps == "(notify)")
    assert terms.hold is (stay != "-")
    if stay == "hold only" and not terms.steps:
        assert terms.drain is None
    elif stay == "hold only":
        assert terms.sooner_if_idle  # jobs run to their end, within the limit that every wait has
        assert terms.tolerate >= timedelta(days=1)
    elif terms.hold:
        assert terms.tolerate == as_duration(stay)
        assert terms.sooner_if_idle is ("idle" in stay)
    drain = terms.drain.deadline if terms.drain else None
    if TIME.match(within):
        assert drain == as_duration(within)
    elif "cannot drain" in within:
        assert drain is None


@pytest.mark.parametrize("terms", DEFAULT.faults.values(), ids=list(DEFAULT.faults))
def test_no_drain_of_the_shipped_policy_uses_force(terms: FaultTerms) -> None:
    assert terms.drain is None or terms.drain.after_deadline is AfterDeadline.ASK


def test_every_replacement_of_the_shipped_policy_waits_for_a_person() -> None:
    approval = DEFAULT.approval(Step.REPLACE)
    assert approval is not None
    assert format_duration(approval.expires) == "4h"


def test_what_the_shipped_policy_says_of_the_fleet_is_frozen() -> None:
    assert [(each.scope, str(each.max)) for each in DEFAULT.budgets] == [
        ("cluster", "5%"),
        ("rack", "1"),
        ("nvlink-domain", "1"),
        ("job", "1"),
    ]
    breaker = DEFAULT.breaker
    assert (breaker.scope, str(breaker.open_above), breaker.min_nodes) == ("pool", "30%", 5)
    assert str(breaker.reopen) == "1 per 30s"


def test_what_is_left_out_takes_the_smallest_power() -> None:
    assert Policy().model_dump(mode="json", exclude={"scopes"}) == {
        "dry_run": False,
        "budgets": [{"scope": "cluster", "max": 1}],
        "hand_offs_count_in": ["cluster"],
        "breaker": {
            "scope": "pool",
            "open_above": "30%",
            "min_nodes": 5,
            "reopen": "1 per 30s",
        },
        "faults": {},
        "approvals": [],
        "signals": [],
        "proving": {
            "checks": [
                *("kernel-log", "presence", "pci", "recovery-action", "memory"),
                *("adapters", "driver", "host"),
            ],
            "limit": "30m",
            "tries": 3,
            "pause": "5m",
            "sweep": None,
            "pairs": None,
        },
        "limits": {
            "lease_wait": "24h",
            "end_job": "15m",
            "reset_gpu": "10m",
            "reboot": "30m",
            "launch": "1h",
            "replace": "2h",
            "verify": "15m",
            "verify_tries": 3,
            "step_tries": 5,
            "step_pause": "30s",
            "recurrences": 3,
            "unknown_wait": "30m",
            "look_again": "5m",
            "answer": "4h",
            "idle_look": "15m",
            "pause": "7d",
            "cool_down": "1h",
        },
    }


def test_what_a_fault_leaves_out_is_frozen() -> None:
    assert FaultTerms().model_dump(mode="json") == {
        "hold": True,
        "tolerate": "10m",
        "sooner_if_idle": False,
        "drain": None,
        "steps": [],
        "may_recover": True,
        "verify": {
            "checks": ["kernel-log", "presence", "pci", "recovery-action", "memory"],
            "settle": "2m",
        },
        "attempts": {"end-job": 3, "reset-gpu": 2, "reboot": 2, "replace": 1, "window": "30d"},
        "probation": "1h",
        "dry_run": False,
        "notify": False,
    }


def test_steps_bring_a_drain_that_asks() -> None:
    drain = FaultTerms(steps=(Step.REBOOT,)).drain
    assert drain is not None
    assert (format_duration(drain.deadline), drain.after_deadline) == ("30m", AfterDeadline.ASK)


@pytest.mark.parametrize("name", [each for each in DEFAULT.faults if DEFAULT.fault(each).steps])
def test_what_a_check_of_the_agent_can_find_is_verified_by_that_check(name: FaultName) -> None:
    seen_by = {check for check, about in ABOUT.items() if name in about.faults} - set(ACTIVE)
    second_witnesses = {Check.DCGM, Check.KERNEL_LOG}
    assert seen_by - second_witnesses <= set(DEFAULT.fault(name).verify.checks)
