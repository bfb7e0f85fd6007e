"""`gpumend policy`, as an operator sees it."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from console.main import main
from fleet.fault import FaultName
from fleet.step import Step
from policies.document import default_policy, load
from policies.explain import explain, render
from policies.meanings import MEANING
from policies.reference import REGENERATE, json_schema, reference
from policies.schema import Policy

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"
TEN = EXAMPLES / "ten-mistakes.yaml"


def test_a_good_file_is_said_to_be_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", str(EXAMPLES / "small-cluster.yaml")]) == 0
    out = capsys.readouterr().out
    assert "no mistakes; digest " in out
    assert "not listed, so held and handed to a person: driver-hung" in out


def test_the_ten_mistakes_are_exactly_these_ten(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", str(TEN)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    marked = {
        number: line.rpartition("# ")[2].split(":")[0]
        for number, line in enumerate(TEN.read_text().splitlines(), 1)
        if line.rpartition("# ")[2].split(":")[0].isdigit()
    }
    lines = said.err.splitlines()
    assert [int(line.removeprefix(f"{TEN}:").split(":")[0]) for line in lines[:-1]] == list(marked)
    assert list(marked.values()) == [str(number) for number in range(1, 11)]
    assert lines[-1] == "10 mistakes"


def test_each_of_the_ten_says_its_path_and_a_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    main(["policy", "check", "--json", str(TEN)])
    answer = json.loads(capsys.readouterr().out)
    assert not answer["ok"]
    assert [(each["line"], each["path"], each["remedy"]) for each in answer["mistakes"]] == [
        (5, "budgets[1].scope", "did you mean rack?"),
        (6, "budgets[2].scope", "keep the one that you mean"),
        (10, "breaker.open_above", "write it like 5%"),
        (11, "breaker.min_node", "did you mean min_nodes?"),
        (14, "faults.gpu-lots", "did you mean gpu-lost?"),
        (
            17,
            "faults.uncontained-memory.tolerate",
            "write a number with its unit, s, m, h or d, like 90s, 30m, 24h, 30d or 1h30m",
        ),
        (18, "faults.uncontained-memory.steps[1]", "write [reset-gpu, reboot, replace]"),
        (
            22,
            "faults.contained-memory.drain.after_deadline",
            "write after_deadline: ask, or tolerate: 0s",
        ),
        (25, "faults.application.hold", "write hold: yes, or steps: []"),
        (28, "approvals[0].on_expiry", "write deny"),
    ]


def test_standard_input_is_checked_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"limit: {}\n")))
    assert main(["policy", "check", "-"]) == 2
    assert capsys.readouterr().err == (
        "standard input:1:1: limit: there is no key 'limit' here; did you mean limits?\n1 mistake\n"
    )


def test_bytes_that_are_not_text_are_said_with_their_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes(b"limits:\n  reboot: \xff\n")
    assert main(["policy", "check", str(file)]) == 2
    assert f"{file}:2:11: not UTF-8 text from here on" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["check", "explain"])
def test_a_file_that_is_not_there_is_said_so(
    action: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["policy", action, str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml: cannot be read: No such file" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_a_mistake_for_programs_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = str(tmp_path / "none.yaml")
    assert main(["policy", "check", "--json", file]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert not answer["ok"]
    assert [(each["source"], each["what"]) for each in answer["mistakes"]] == [
        (file, "the file cannot be read")
    ]


def test_a_disk_that_is_full_is_said_in_one_line() -> None:
    command = [sys.executable, "-m", "console.main", "policy", "explain"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.stderr == "gpumend policy: No space left on device\n"
    assert ended.returncode == 3


def test_a_broken_file_is_not_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "explain", str(TEN)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "did you mean gpu-lost?" in said.err


def test_the_json_of_a_good_file_names_its_digest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", "--json", str(EXAMPLES / "small-cluster.yaml")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"]
    assert len(answer["digest"]) == 8
    assert answer["mistakes"] == []


def test_a_ladder_is_explained_with_its_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "explain", "--fault", "firmware-halted"]) == 0
    assert capsys.readouterr().out == (
        """\
firmware-halted: the firmware of a GPU has stopped
  hold       at once: no new work lands on the node
  tolerate   no time: jobs are to leave at once
  lease      waits at most 24h for the disruption budget: 5% of the cluster, 1 in each rack, 1 in
             each nvlink-domain, 1 in each job
  drain      pods are evicted within 10m of the lease; then a person is asked
  reset-gpu  takes at most 10m; at most once in 30d on the same machine and part
  reboot     if that does not help: takes at most 30m; at most 2 times in 30d on the same machine
             and part
  replace    if that does not help: takes at most 2h; at most once in 30d on the same machine and
             part; waits 4h for a person's yes, and no answer is a no
  verify     after each step: kernel-log, presence, pci, recovery-action, memory pass and it is
             quiet for 2m; takes at most 15m
  release    once verified: the hold is taken off and the lease given back
  probation  watched for 1h; a fault that comes back goes on one step higher, 3 times
  hand-off   if the last step does not help or a limit is reached: the hold stays, and a person is
             told what is needed
"""
    )


def test_every_fault_is_explained_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["policy", "explain"])
    text = capsys.readouterr().out
    assert [name for name in FaultName if f"\n{name.value}: " in f"\n{text}"] == list(FaultName)
    main(["policy", "explain", "--json"])
    ladders = json.loads(capsys.readouterr().out)
    assert [each["fault"] for each in ladders] == list(FaultName)


def test_an_unknown_fault_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["policy", "explain", "--fault", "gpu-lots"])
    assert caught.value.code == 2
    assert "'gpu-lots' is not a fault; one of gpu-lost" in capsys.readouterr().err


def test_a_fault_that_is_not_listed_is_explained_as_a_hand_off() -> None:
    text = render(Policy(), FaultName.GPU_LOST)
    assert "(not listed in this policy)" in text
    assert [line.step for line in explain(Policy(), FaultName.GPU_LOST)] == [
        Step.HOLD,
        Step.HAND_OFF,
    ]


def test_a_silent_monitor_holds_nothing_and_tells_people() -> None:
    text = render(default_policy(), FaultName.MONITOR_SILENT)
    assert "nothing is held and nothing is repaired; people are told" in text


def test_every_fault_has_a_meaning() -> None:
    assert list(MEANING) == list(FaultName)


def test_the_reference_page_is_fresh() -> None:
    page = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
    assert page == reference(), f"docs/policy.md is stale; run: {REGENERATE}"


def test_the_reference_page_shows_every_key_of_every_part() -> None:
    page = reference()
    for part in (json_schema(), *json_schema()["$defs"].values()):
        for key, field in part.get("properties", {}).items():
            assert f"| `{key}` |" in page
            assert field.get("description") or "$ref" in field


def test_the_schema_says_defaults_as_people_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    limits = schema["$defs"]["Limits"]["properties"]
    assert limits["lease_wait"]["default"] == "24h"
    assert schema["$defs"]["Breaker"]["properties"]["open_above"]["default"] == "30%"
    assert {"const": "none"} in schema["$defs"]["FaultTerms"]["properties"]["drain"]["anyOf"]


def test_the_shipped_examples_are_what_they_claim_to_be() -> None:
    assert sorted(each.name for each in EXAMPLES.glob("*.yaml")) == [
        "small-cluster.yaml",
        "ten-mistakes.yaml",
    ]
    small = load((EXAMPLES / "small-cluster.yaml").read_bytes(), "small-cluster.yaml")
    assert small.approval(Step.REBOOT)


@pytest.mark.parametrize("action", ["explain", "schema", "reference"])
def test_a_reader_that_leaves_is_no_error(action: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "console.main", "policy", action],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_a_fault_in_dry_run_is_explained_as_such() -> None:
    policy = load("faults: {gpu-lost: {steps: [reboot], dry_run: yes}, thermal: {}}", "x")
    assert "dry run: decided and shown, nothing is touched" in render(policy, FaultName.GPU_LOST)
    assert "dry run" not in render(policy, FaultName.THERMAL)
