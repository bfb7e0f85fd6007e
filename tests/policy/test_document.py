"""A policy file is read as a whole: every mistake at once, each with its line and a way out."""

import textwrap

import pytest

from fleet.fault import FaultName
from fleet.step import Step
from policies.document import Mistake, PolicyErrors, load
from policies.schema import Policy

DESIGN_EXAMPLE = """\
budgets:
  - {scope: cluster, max: 5%}
  - {scope: rack, max: 1}
  - {scope: job, max: 1}
breaker:
  {scope: pool, open_above: 30%, min_nodes: 5, reopen: 1 per 30s}
faults:
  uncontained-memory:
    hold: yes
    tolerate: 0s
    drain: {deadline: 30m, after_deadline: ask}
    steps: [reset-gpu, reboot, replace]
    verify: {checks: [recovery-action, memory], settle: 2m}
    attempts: {reset-gpu: 1, reboot: 2, window: 30d}
    probation: 1h
  nic-missing: {tolerate: 10m, steps: [reboot, replace]}
  contained-memory: {tolerate: 24h, sooner_if_idle: yes, steps: [reset-gpu]}
  application: {hold: no, steps: []}
approvals:
  - {step: replace, expires: 4h, on_expiry: deny}
"""


def mistakes(text: str) -> tuple[Mistake, ...]:
    with pytest.raises(PolicyErrors) as caught:
        load(textwrap.dedent(text), "p.yaml")
    return caught.value.mistakes


def only(text: str) -> str:
    found = mistakes(text)
    assert len(found) == 1, found
    return str(found[0])


def test_the_example_of_the_design_is_a_policy() -> None:
    policy = load(DESIGN_EXAMPLE, "p.yaml")
    assert policy.fault(FaultName.UNCONTAINED_MEMORY).attempts.of(Step.RESET_GPU) == 1
    assert policy.fault(FaultName.NIC_MISSING).drain is not None
    assert not policy.fault(FaultName.APPLICATION).hold


def test_a_fault_that_is_not_listed_is_held_and_nothing_else() -> None:
    terms = Policy().fault(FaultName.GPU_LOST)
    assert terms.hold
    assert terms.steps == ()
    assert terms.drain is None


@pytest.mark.parametrize("name", [FaultName.APPLICATION, FaultName.MONITOR_SILENT])
def test_what_is_not_the_nodes_fault_holds_nothing_when_not_listed(name: FaultName) -> None:
    assert not Policy().fault(name).hold


def test_mistakes_come_all_at_once_in_the_order_of_the_file() -> None:
    found = mistakes(
        """\
        budgets:
          - {scope: rak, max: 1}
        breaker: {scope: job, open_above: 30}
        faults:
          gpu-lots: {steps: [reboot]}
          gpu-lost:
            tolerate: 10
            steps: [reboot, rebot, reset-gpu]
        limit: {}
        """
    )
    assert [(each.line, each.path) for each in found] == [
        (2, "budgets[0].scope"),
        (3, "breaker.scope"),
        (3, "breaker.open_above"),
        (5, "faults.gpu-lots"),
        (7, "faults.gpu-lost.tolerate"),
        (8, "faults.gpu-lost.steps[1]"),
        (8, "faults.gpu-lost.steps[2]"),
        (9, "limit"),
    ]


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", "1:1", "empty"),
        ("# nothing\n", "1:1", "empty"),
        ("- a\n", "1:1", "a mapping"),
        ("hello\n", "1:1", "a mapping"),
        ("faults: [\n", "2:1", "not YAML"),
        ("a: b: c\n", "1:5", "not YAML"),
        ("a: 1\n---\nb: 2\n", "2:1", "document"),
        ("limits: {reboot: 30m}\nlimits: {reboot: 5m}\n", "2:1", "already there, on line 1"),
        ("limits: {reboot: \x07}\n", "1:18", "does not allow"),
        ("limits: &a [*a]\n", "1:9", "aliases"),
        ("limits: " + "[" * 100_000, "1:24", "deeper"),
        ("limits: *nobody\n", "1:9", "not YAML"),
        ("limits: !!python/object:os.system {}\n", "1:9", "tag"),
        ("? [a, b]\n: c\n", "1:3", "one word"),
        ("limits: {<<: {reboot: 5m}}\n", "1:10", "no key '<<'"),
        ("x" * 600_000, "1:1", "characters"),
    ],
)
def test_what_is_not_yaml_is_said_with_its_place(text: str, place: str, says: str) -> None:
    found = mistakes(text)
    assert any(str(m).startswith(f"p.yaml:{place}: ") and says in str(m) for m in found), found


def test_a_few_lines_that_stand_for_billions_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "aliases stand for more than" in only("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("12:30", "'12:30' is not a duration"),
        ("1e3", "'1e3' is not a duration"),
        ("010", "'010' is not a duration"),
        ("10", "10 is not a duration"),
        ("2026-01-01", "'2026-01-01' is not a duration"),
        ("yes", "yes is not a duration"),
        ("~", "nothing is not a duration"),
        ("1.5", "'1.5' is not a duration"),
    ],
)
def test_values_that_old_yaml_reads_as_something_else_are_not_guessed(
    value: str, says: str
) -> None:
    message = only(f"limits: {{reboot: {value}}}\n")
    assert message.startswith("p.yaml:1:18: limits.reboot: ")
    assert says in message
    assert "like 90s" in message


@pytest.mark.parametrize("word", ["yes", "Yes", "on", "true", "TRUE"])
def test_every_spelling_of_yes_is_a_yes(word: str) -> None:
    policy = load(f"faults: {{slow: {{notify: {word}}}}}\n", "p.yaml")
    assert policy.fault(FaultName.SLOW).notify is True


def test_a_number_is_not_a_yes() -> None:
    assert "1 is not a yes or a no; write yes or no" in only("faults: {slow: {notify: 1}}\n")


def test_a_yes_is_not_a_number() -> None:
    assert "yes is not a whole number" in only("breaker: {min_nodes: yes}\n")


def test_a_key_that_looks_like_a_yes_is_named_as_written() -> None:
    assert "there is no key 'on' here" in only("on: 1\n")


def test_an_unquoted_status_is_told_about_quotes() -> None:
    message = only("faults: {gpu-lost: {}}\nsignals: [{type: A, status: False, fault: gpu-lost}]\n")
    assert "signals[0].status" in message
    assert "put it in quotes" in message


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("faults: {gpu-lots: {}}", "faults.gpu-lots", "did you mean gpu-lost?"),
        ("faults: {xyz: {}}", "faults.xyz", "write one of gpu-lost, driver-hung"),
        ("faults: {slow: {step: []}}", "faults.slow.step", "did you mean steps?"),
        ("faults: {slow: {steps: [hold]}}", "faults.slow.steps[0]", "end-job, reset-gpu"),
        ("faults: {slow: {steps: [reset_gpu]}}", "faults.slow.steps[0]", "did you mean reset-gpu?"),
        ("faults: {slow: {verify: {checks: [memry]}}}", "faults.slow.verify.checks[0]", "memory?"),
        ("faults: {slow: {steps: reboot}}", "faults.slow.steps", "a list; write it like [a, b]"),
        ("faults: {slow: 5}", "faults.slow", "5 is not a mapping"),
        ("faults: {slow: {drain: 5}}", "faults.slow.drain", "5 is not a mapping"),
        (
            "faults: {slow: {attempts: {reboot: 0}}}",
            "faults.slow.attempts.reboot",
            "0 is too small; the bound is 1",
        ),
        (
            "faults: {slow: {attempts: {reset_gpu: 1}}}",
            "faults.slow.attempts.reset_gpu",
            "reset-gpu?",
        ),
        ("budgets: []", "budgets", "is too short; the bound is 1"),
        ("budgets: [{scope: rack}]", "budgets[0]", "max is missing; add it, like max: 5%"),
        ("budgets: [{scope: 'label:a b', max: 1}]", "budgets[0].scope", "not the key of a label"),
        ("scopes: {pool: ['a b']}", "scopes.pool[0]", "not the key of a label"),
        ("scopes: {nvlink_domain: []}", "scopes.nvlink_domain", "did you mean nvlink-domain?"),
        ("signals: [{type: Ready, status: 'False', fault: slow}]", "signals[0].type", "built in"),
    ],
)
def test_each_mistake_names_its_path_and_a_way_out(text: str, path: str, says: str) -> None:
    message = only(text + "\n")
    assert f": {path}: " in message
    assert says in message
