"""The document is an argument of each incident: it must come out of JSON exactly as it went in."""

import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from activities.adapters.payloads import DATA_CONVERTER
from fleet.check import Check
from fleet.fault import FaultName
from fleet.step import REPAIRS
from policies.document import default_policy
from policies.schema import Policy

durations = st.integers(0, 366 * 86_400).map(lambda seconds: f"{seconds}s")
amounts = st.integers(0, 100_000) | st.integers(1, 1000).map(lambda t: f"{t // 10}.{t % 10}%")
repairs = st.sampled_from([each.value for each in REPAIRS])
scopes = st.sampled_from(["cluster", "pool", "rack", "nvlink-domain", "job", "label:a.b/c-d"])
labels = st.lists(st.sampled_from(["pool", "a.b/pool", "x/Y.z_0"]), max_size=3)
tries = st.integers(1, 20)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A part with any of its fields."""
    return st.fixed_dictionaries(
        {}, optional={name.replace("__", "-"): each for name, each in fields.items()}
    )


fault_terms = some(
    hold=st.booleans(),
    tolerate=durations,
    sooner_if_idle=st.booleans(),
    may_recover=st.booleans(),
    drain=some(deadline=durations, after_deadline=st.sampled_from(["ask", "hand-off", "force"]))
    | st.sampled_from([None, "none"]),
    steps=st.lists(repairs, max_size=4),
    verify=some(checks=st.lists(st.sampled_from(list(Check)), max_size=5), settle=durations),
    attempts=some(end__job=tries, reset__gpu=tries, reboot=tries, window=durations),
    probation=durations,
    notify=st.booleans(),
)
documents = some(
    budgets=st.lists(
        st.fixed_dictionaries({"scope": scopes, "max": amounts}), min_size=1, max_size=3
    ),
    hand_offs_count_in=st.lists(scopes, max_size=3),
    breaker=some(scope=scopes, min_nodes=st.integers(1, 9), reopen=st.just("2 per 90s")),
    faults=st.dictionaries(
        st.sampled_from([each.value for each in FaultName]), fault_terms, max_size=3
    ),
    approvals=st.lists(st.fixed_dictionaries({"step": repairs}), max_size=3),
    signals=st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["A", "B"]),
                "status": st.sampled_from(["True", "False"]),
                "fault": st.sampled_from(list(FaultName)),
            },
            optional={"reason": st.sampled_from([".*", r"Xid\d+", "ä|b"])},
        ),
        max_size=3,
    ),
    scopes=some(pool=labels, nvlink__domain=labels),
    limits=some(lease_wait=durations, verify_tries=tries),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents)
def test_a_policy_survives_json_exactly(document: dict[str, Any]) -> None:
    policy = Policy.model_validate(document)
    back = Policy.model_validate_json(policy.model_dump_json())
    assert back == policy
    assert back.model_dump_json() == policy.model_dump_json()
    assert back.digest == policy.digest


async def test_a_policy_survives_the_converter_of_temporal() -> None:
    policy = default_policy()
    payloads = await DATA_CONVERTER.encode([policy])
    (back,) = await DATA_CONVERTER.decode(payloads, [Policy])
    assert back == policy


def test_the_digest_names_the_content_and_not_the_order_of_keys() -> None:
    one = Policy.model_validate({"faults": {"slow": {}, "power": {}}})
    other = Policy.model_validate({"faults": {"power": {}, "slow": {}}})
    third = Policy.model_validate({"faults": {"power": {}, "slow": {"tolerate": "1s"}}})
    assert one.digest == other.digest != third.digest
    assert len(one.digest) == 8


def test_a_policy_does_not_change() -> None:
    with pytest.raises(ValidationError):
        default_policy().limits.reboot = default_policy().limits.replace  # type: ignore[misc]
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        default_policy().breaker.open_above.tenths = 1  # type: ignore[misc]
