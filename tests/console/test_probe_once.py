"""One look at a node, as a person on it reads it."""

import json
from datetime import UTC, datetime

import pytest

from console import exits
from console.main import main
from console.probe_once import rows
from fleet.check import Check
from fleet.fault import Advice, FaultName
from fleet.part import HOST, Part
from probes import checks
from probes.agent.once import look_once
from probes.agent.rounds import Timed
from probes.checks.subject import fault, ok, unknown
from tests.agent.fake_machine import FakeMachine, xid

SICK = fault("pci", Part("gpu:1"), FaultName.GPU_LOST, "pci:all-ones", Advice.REBOOT, "all ones")
UNTOLD = unknown("pci", Part("gpu:2"), "pci:short", "half a word")


@pytest.mark.parametrize(
    ("findings", "told"),
    [
        ((), ["- none 0.25 nothing of the kind on this machine"]),
        ((ok("pci", HOST, "32 there"),), ["host ok 0.25 32 there"]),
        (
            (ok("pci", Part("gpu:0"), "x"), ok("pci", Part("gpu:3"))),
            ["2 parts ok 0.25 x"],
        ),
        (
            (ok("pci", Part("gpu:0")), UNTOLD, SICK),
            [
                "gpu:1 fault 0.25 gpu-lost pci:all-ones all ones",
                "gpu:2 unknown pci:short half a word",
                "gpu:0 ok",
            ],
        ),
    ],
)
def test_a_check_is_told_worst_first_with_its_time_once(findings, told):
    lines = rows(Timed("pci", findings, 0.25))
    assert [" ".join(line.removeprefix("pci").split()) for line in lines] == told


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUMEND_HOST_EXEC", "")
    return FakeMachine(tmp_path / "m")


def test_the_log_is_a_row_like_any_check(fake):
    def log():
        looked = look_once(fake.machine, b"", datetime.now(UTC), False, ("kernel-log",))
        (timed,) = looked.checks
        return [(each.part, each.verdict.value, each.code) for each in timed.findings]

    assert log() == [("host", "ok", "")]
    fake.log(xid("0000:53:00", 95), xid("0000:53:00", 95))
    assert log() == [("gpu:1", "fault", "xid:95")]
    (fake.root / "dev/kmsg").unlink()
    assert log() == [("host", "unknown", "log:unreadable")]


def test_every_check_has_its_place_in_the_table_and_in_the_json(fake, capsys):
    fake.log(xid("0000:53:00", 95))
    command = ["probe", "--once", "--root", str(fake.root)]
    assert main(command) == exits.FOUND
    table = capsys.readouterr().out
    named = [line.split()[0] for line in table.splitlines() if line[:1].islower()]
    assert dict.fromkeys(named) == dict.fromkeys(
        [Check.KERNEL_LOG, *checks.PASSIVE, *(each for each in named if each.startswith("gpumend"))]
    )
    assert main([*command, "--json"]) == exits.FOUND
    said = json.loads(capsys.readouterr().out)
    (line,) = [each for each in said["checks"] if each["check"] == "kernel-log"]
    assert (line["part"], line["fault"], line["seconds"] >= 0) == (
        "gpu:1",
        "uncontained-memory",
        True,
    )
