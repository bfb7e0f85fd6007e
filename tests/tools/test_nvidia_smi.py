"""nvidia-smi where NVML tells nothing: statuses, cells, refusals, output cut off, hangs, back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.finding import Verdict
from probes.checks import memory, nvidia_smi
from probes.checks.nvidia_smi import EXITS, Cell
from probes.checks.subject import Subject
from probes.child import Ended
from probes.machine import Machine
from probes.parts import Naming
from tests.tools.machine import GPUS, MISSING, Near, said, well

CHECKS = ["presence", "recovery-action", "memory"]
LOST = "Unable to determine the device handle for GPU 0000:53:00.0: GPU is lost.  Reboot."
TO_RESET = "Unable to determine the device handle for GPU0000:53:00.0: GPU requires reset"
UNTOLD = "Unable to determine the device handle for GPU1: 0000:53:00.0: Unknown Error"


@pytest.fixture(autouse=True)
def without_nvml(tools):
    tools.nvml(MISSING)


@pytest.mark.parametrize("name", CHECKS)
def test_a_sound_machine_is_well_without_nvml(tools, name):
    tools.smi_says(process=True)
    findings = tools.look(name)
    assert said(findings) <= {("host", "monitor-silent", "nvml:library-missing")}
    assert well(findings) == {"gpu:0", "gpu:1"}


def test_a_library_that_is_missing_while_the_driver_runs_is_our_trouble_until_it_is_back(tools):
    silent = ("host", "monitor-silent", "nvml:library-missing")
    assert silent in said(tools.look("presence"))
    tools.nvml('{"driver": "580.65.06", "count": 0}\n{"end": true}')
    assert silent not in said(tools.look("presence"))


@pytest.mark.parametrize("script", ["", "kill -9 $$"])
def test_a_child_of_which_nothing_comes_is_no_nvml_either(tools, script):
    tools.nvml("", script)
    assert well(tools.look("memory")) == {"gpu:0", "gpu:1"}


@pytest.mark.parametrize(
    ("message", "status", "expected"),
    [
        (LOST, 15, ("gpu:1", "gpu-lost", "nvidia-smi:gpu-lost")),
        (LOST, 0, ("gpu:1", "gpu-lost", "nvidia-smi:gpu-lost")),
        (TO_RESET, 255, ("gpu:1", "firmware-halted", "nvidia-smi:reset-required")),
        (UNTOLD, 255, ("gpu:1", "unknown", "nvidia-smi:no-handle")),
        (UNTOLD, 14, ("gpu:1", "inforom", "nvidia-smi:inforom")),
        ("Unable to determine the device handle for GPU: Unknown Error", 255,
         ("host", "unknown", "nvidia-smi:no-handle")),
        ("x", 15, ("host", "gpu-lost", "nvidia-smi:gpu-lost")),
        ("x", 255, ("host", "unknown", "nvidia-smi:exit-255")),
        ("External power cables of 0000:53:00.0", 8, ("gpu:1", "power", "nvidia-smi:power-cable")),
    ],
)  # fmt: skip
def test_a_gpu_that_it_cannot_open_is_named_and_the_others_are_read(
    tools, message, status, expected
):
    tools.smi_says(gpus={GPUS["0"]: {}}, message=message, exit=status)
    findings = tools.look("memory")
    assert expected in said(findings)
    assert "gpu:1" not in well(findings)
    assert "gpu:0" in well(findings)


def test_no_devices_with_gpus_on_the_bus_is_no_health_whatever_the_status(tools):
    for status in (0, 6):
        tools.smi_says(raw="No devices were found\n", exit=status)
        for name in CHECKS:
            findings = tools.look(name)
            assert ("host", "unknown", "nvidia-smi:no-devices") in said(findings)
            assert well(findings) == set()


@pytest.mark.parametrize("status", [1, 2, 3, 4, 6, 8, 9, 10, 12, 13, 14, 15, 16, 18, 255])
def test_every_status_has_a_meaning_and_none_is_health(tools, status):
    tools.smi_says(raw="", exit=status)
    findings = tools.look("recovery-action")
    assert well(findings) == set()
    word = EXITS[status][0] if status in EXITS else f"exit-{status}"
    assert {code for _, _, code in said(findings)} == {f"nvidia-smi:{word}"}


@pytest.mark.parametrize("how", ["half", "child"])
def test_a_hang_is_the_drivers_and_a_grandchild_is_nobodys(tools, how, monkeypatch):
    monkeypatch.setattr(Near.run, "__kwdefaults__", {"limit": 1.0, "grace": 0.5})
    tools.smi_says(behave=how)
    expected = {("host", "driver-hung", "child:hung")} if how == "half" else set()
    assert said(tools.look("recovery-action")) == expected
    tools.smi_says(behave="")
    if how == "child":
        assert said(tools.look("recovery-action")) == set()


class Told(Subject):
    """A subject whose nvidia-smi says what the test says."""

    def run(self, tool: str, *arguments: str, limit: float = 0.0, grace: float = 0.0) -> Ended:
        del tool, arguments, limit, grace
        return Ended(0, self.words)

    words = ""


def test_a_table_cut_off_anywhere_never_says_less_than_it_was_going_to(tmp_path):
    whole = "00000000:52:00.0, 10\n00000000:53:00.0, 20\n"
    subject = Told(Machine(tmp_path, tmp_path), Naming({}))
    for at in range(len(whole)):
        Told.words = whole[:at]
        table = nvidia_smi.query("memory", subject, ("pci.bus_id", "count"))
        values = [row["count"] for row in table.rows.values()]
        assert values == ["10", "20"][: len(values)]
        assert table.findings or Told.words.endswith("\n")


CELLS = st.sampled_from(["0", "No", "Yes", "ERR!", "[N/A]", "[Unknown Error]", "3", "", "²", "-0"])


@settings(max_examples=30)
@given(st.lists(CELLS | st.text("0123456789abc ,!²\n", max_size=12), min_size=2, max_size=2))
def test_no_cell_raises_and_only_a_nought_is_health(tmp_path_factory, cells):
    subject = Told(Machine(tmp_path_factory.getbasetemp(), tmp_path_factory.getbasetemp()),
                   Naming({}))  # fmt: skip
    Told.words = "".join(f"00000000:5{n}:00.0, {cell}\n" for n, cell in enumerate(cells))
    findings = memory._by_nvidia_smi(subject)
    assert not any(each.verdict is Verdict.OK for each in findings), "one table answers for two"
    table = nvidia_smi.query("memory", subject, ("pci.bus_id", "count"))
    assert all(isinstance(row["count"], str | Cell) for row in table.rows.values())
