"""Each check of NVML, by table: sound, sick, mute, not there, recovered. No process, no library."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.finding import Verdict
from probes import checks
from probes.checks.nvml_memory import FLAGS
from probes.checks.subject import Subject
from probes.fault_set import FaultSet
from probes.machine import Machine
from probes.nvml.view import Mute, View, read
from probes.parts import Gpu, Naming
from simulator.hardware.machine import Machine as Simulated
from simulator.hardware.nvml import lines

FABRIC = "fabric-not-ready"
NVML = ("memory", "recovery-action", "nvlink", "fabric", "pcie", "thermal")
LOST, NOT_SUPPORTED, UNKNOWN_ERROR = [15], [3], [999]
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> str:
    machine = Simulated.create(tmp_path_factory.mktemp("machines") / "m", "n1", 8)
    return "".join(json.dumps(line) + "\n" for line in lines(machine))


def changed(sound: str, gpu: int, values: Mapping[str, Any]) -> str:
    """The same output with other values of one GPU; `5/state` is of link 5."""
    documents = [json.loads(line) for line in sound.splitlines()]
    mine = next(each for each in documents if each.get("gpu") == gpu)
    mine["links"] = [dict(each) for each in mine["links"]]
    for key, value in values.items():
        link, slash, name = key.partition("/")
        if slash:
            mine["links"][int(link)][name] = value
        else:
            mine["values"][key] = value
    return "".join(json.dumps(line) + "\n" for line in documents)


class Machines(Subject):
    """A subject whose NVML says what the test says; rounds are a minute apart."""

    def say(self, output: str, hung: bool = False) -> None:
        self.told = read(output, hung)

    def nvml(self) -> View:
        return self.told

    def look(self, name: str, minute: int = 0):
        self.at = minute * 60.0
        return checks.PASSIVE[name](self)


@pytest.fixture
def subject(sound):
    addresses = {
        json.loads(line)["pci"][4:-2].lower(): Gpu(json.loads(line)["minor"])
        for line in sound.splitlines()
        if "pci" in line
    }
    found = Machines(Machine(Path("/nowhere"), Path("/nowhere")), Naming(addresses))
    found.say(sound)
    return found


def said(findings) -> set[tuple[str, str, str]]:
    return {
        (each.part, each.fault or each.verdict.value, each.code)
        for each in findings
        if each.verdict is not Verdict.OK
    }


@pytest.mark.parametrize("name", NVML)
def test_a_sound_machine_is_well_in_every_gpu(subject, name):
    findings = subject.look(name)
    assert said(findings) == set()
    assert {each.part for each in findings} == {f"gpu:{index}" for index in range(8)}


def joined(state: int, status: int, mask: int, summary: int) -> dict[str, Any]:
    """What NVML says of a GPU's fabric."""
    return {"fabric": {"list": [state, status, mask, summary]}}


LEVELS = [
    ("memory", {"ecc_uncorrected": 3}, "gpu:2", "uncontained-memory", "ecc:uncorrected"),
    ("memory", {"remap_pending": 1}, "gpu:2", "contained-memory", "remap:pending"),
    ("memory", {"remap_failure": 1}, "gpu:2", "memory-exhausted", "remap:failure"),
    ("memory", {"banks_exhausted": 2}, "gpu:2", "memory-exhausted", "remap:banks-exhausted"),
    ("memory", {"sram_threshold": 1}, "gpu:2", "memory-exhausted", "sram:threshold"),
    ("memory", {"unrepairable": 1}, "gpu:2", "memory-exhausted", "memory:unrepairable"),
    ("memory", {"repair_pending": {"list": [1, 0]}}, "gpu:2", "contained-memory", "repair:pending"),
    ("memory", {"retired_pending": 1}, "gpu:2", "contained-memory", "retire:pending"),
    ("memory", {"retired_sbe": 40, "retired_dbe": 23}, "gpu:2", "memory-exhausted", "retire:full"),
    ("recovery-action", {"recovery_action": 1}, "gpu:2", "firmware-halted", "recovery-action:1"),
    ("recovery-action", {"recovery_action": 2}, "gpu:2", "driver-hung", "recovery-action:2"),
    ("recovery-action", {"recovery_action": 6}, "gpu:2", "gpu-lost", "recovery-action:6"),
    ("recovery-action", {"recovery_action": 99}, "gpu:2", "unknown-code", "recovery-action:99"),
    ("nvlink", {"5/state": 0}, "nvlink:2/5", "nvlink-error", "nvlink:down"),
    ("nvlink", {"5/state": 7}, "nvlink:2/5", "unknown", "nvlink:unlisted"),
    ("nvlink", {"17/speed": 13_281}, "nvlink:2/17", "nvlink-error", "nvlink:slow"),
    ("fabric", joined(1, 0, 0, 0), "gpu:2", FABRIC, "fabric:not-started"),
    ("fabric", joined(3, 999, 0, 0), "gpu:2", FABRIC, "fabric:failed"),
    ("fabric", joined(3, 0, 0, 2), "gpu:2", FABRIC, "fabric:unhealthy"),
    ("fabric", joined(3, 0, 1, 3), "gpu:2", FABRIC, "fabric:limited-capacity"),
    ("fabric", joined(3, 0, 1, 0), "gpu:2", FABRIC, "fabric:unhealthy"),
    ("fabric", joined(3, 0, 0x500, 0), "gpu:2", FABRIC, "fabric:unhealthy"),
    ("fabric", joined(2, 0, 0, 0), "gpu:2", "unknown", "fabric:in-progress"),
    ("pcie", {"width": 8}, "gpu:2", "pcie-degraded", "pcie:width"),
    ("thermal", {"margin": -2}, "gpu:2", "thermal", "thermal:no-margin"),
    ("thermal", {"power": 0}, "gpu:2", "power", "power:unreadable"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "part", "fault", "code"), LEVELS)
def test_a_level_accuses_the_one_part_that_it_is_of(
    subject, sound, name, values, part, fault, code
):
    subject.say(changed(sound, 2, values))
    findings = subject.look(name)
    assert said(findings) == {(part, fault, code)}
    assert sum(each.verdict is Verdict.OK for each in findings) == 7


@pytest.mark.parametrize(("name", "values", "part", "fault", "code"), LEVELS)
def test_a_level_that_is_well_again_ends_what_it_had_claimed(
    subject, sound, name, values, part, fault, code
):
    faults = FaultSet()
    subject.say(changed(sound, 2, values))
    for minute in range(3):
        faults.judge(subject.look(name), NOW + timedelta(minutes=minute))
    assert {each.part for each in faults.faults(subject.naming)} == {part} - (
        {part} if fault == "unknown" else set()
    )
    subject.say(sound)
    for _ in range(2):
        faults.judge(subject.look(name), NOW)
    assert faults.faults(subject.naming) == ()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("memory", {"remapped_uncorrectable": 600}),
        ("memory", {"ecc_corrected": 20_000_000}),
        ("fabric", joined(3, 0, 0b10_0001_10101010, 0)),
        ("fabric", joined(0, 0, 0, 0)),
        ("nvlink", {"mig_mode": {"list": [1, 1]}, "0/state": 0}),
        ("nvlink", {"3/crc": 10**9}),
        ("nvlink", {"3/state": 2, "3/speed": 0}),
        ("pcie", {"generation": 1}),
        ("thermal", {"sw_thermal_ns": 10**12}),
    ],
)
def test_what_looks_bad_and_is_by_design_accuses_nobody(subject, sound, name, values):
    subject.say(changed(sound, 2, values))
    assert said(subject.look(name)) == set()


RISES = [
    ("memory", "ecc_corrected", 50_000, 1_000_000, "contained-memory", "ecc:corrected-storm"),
    ("nvlink", "4/replay", 5, 6, "nvlink-error", "nvlink:replay"),
    ("nvlink", "4/crc", 6_000, 6_001, "nvlink-error", "nvlink:crc"),
    ("nvlink", "4/recovery_failed", 0, 1, "nvlink-error", "nvlink:recovery-failed"),
    ("pcie", "pcie_replays", 31, 32, "pcie-degraded", "pcie:replays"),
    ("pcie", "pcie_fatal", 0, 1, "pcie-degraded", "pcie:fatal"),
    ("thermal", "hw_thermal_ns", 600_000_000, 700_000_000, "thermal", "thermal:hardware-slowdown"),
    ("thermal", "power_brake_ns", 600_000_000, 700_000_000, "power", "power:brake"),
]


@pytest.mark.parametrize(("name", "key", "little", "much", "fault", "code"), RISES)
def test_a_counter_accuses_by_what_it_rose_in_a_minute(
    subject, sound, name, key, little, much, fault, code
):
    begin = 1_000_000
    for minute, value in enumerate((begin, begin + little, begin + little + much)):
        subject.say(changed(sound, 2, {key: value}))
        found = said(subject.look(name, minute))
        assert {(each[1], each[2]) for each in found} == ({(fault, code)} if minute == 2 else set())


def test_a_counter_that_ran_backwards_was_reset_and_counts_from_there(subject, sound):
    for minute, value, accused in ((0, 900, False), (1, 3, False), (2, 1, False), (3, 90, True)):
        subject.say(changed(sound, 2, {"pcie_replays": value}))
        assert bool(said(subject.look("pcie", minute))) is accused


@pytest.mark.parametrize("name", NVML)
def test_values_that_this_driver_lacks_are_neither_fault_nor_health(subject, sound, name):
    documents = [json.loads(line) for line in sound.splitlines()]
    mine = next(each for each in documents if each.get("gpu") == 2)
    mine["values"] = dict.fromkeys(mine["values"], NOT_SUPPORTED)
    mine["links"] = []
    subject.say("".join(json.dumps(line) + "\n" for line in documents))
    assert said(subject.look(name)) == {("gpu:2", "unknown", "nvml:not-supported")}


@pytest.mark.parametrize("name", NVML)
@pytest.mark.parametrize(
    ("code", "fault", "word"),
    [(LOST, "gpu-lost", "nvml:gpu-lost"), (UNKNOWN_ERROR, "unknown", "nvml:999")],
)
def test_values_that_the_driver_refuses_are_what_its_code_means(
    subject, sound, name, code, fault, word
):
    documents = [json.loads(line) for line in sound.splitlines()]
    mine = next(each for each in documents if each.get("gpu") == 2)
    mine["values"] = dict.fromkeys(mine["values"], code)
    mine["links"] = []
    subject.say("".join(json.dumps(line) + "\n" for line in documents))
    assert said(subject.look(name)) == {("gpu:2", fault, word)}


@pytest.mark.parametrize("name", NVML)
def test_a_driver_that_does_not_answer_is_the_fault(subject, sound, name):
    cut = "".join(line + "\n" for line in sound.splitlines()[:4])
    subject.say(cut, hung=True)
    findings = subject.look(name)
    assert ("host", "driver-hung", "child:hung") in said(findings)
    assert {each.part for each in findings if each.verdict is Verdict.OK} <= {
        "gpu:0",
        "gpu:1",
        "gpu:2",
    }


@pytest.mark.parametrize("name", NVML)
@pytest.mark.parametrize(
    ("output", "fault", "word"),
    [
        ("", "unknown", "nvml:999"),
        ('{"init": [9]}', "unknown", "nvml:driver-not-loaded"),
        ('{"init": [18]}', "config-mismatch", "nvml:version-mismatch"),
        ('{"driver": "1", "count": [15]}', "gpu-lost", "nvml:gpu-lost"),
        ('{"driver": "1", "count": 8}', "unknown", "nvml:incomplete"),
    ],
)
def test_a_driver_that_tells_nothing_is_no_healthy_one(subject, name, output, fault, word):
    subject.say(output)
    if not output and name in ("memory", "recovery-action"):
        word = "nvidia-smi:missing"
    assert said(subject.look(name)) == {("host", fault, word)}


@given(st.data())
def test_no_output_however_broken_raises_or_passes_for_health(sound, data):
    at = data.draw(st.integers(0, len(sound)))
    junk = data.draw(st.text(max_size=40))
    output = sound[:at] + junk + sound[at + data.draw(st.integers(0, 400)) :]
    view = read(output)
    subject = Machines(Machine(Path("/nowhere"), Path("/nowhere")), Naming({}))
    subject.told = view
    for name in NVML:
        findings = subject.look(name)
        if not view.whole:
            assert any(each.verdict is not Verdict.OK for each in findings)


ODD = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    *(st.lists(st.integers(-1, 40), max_size=2), st.just(10**400)),
)


@settings(max_examples=30)
@given(st.sampled_from(sorted(FLAGS)), ODD)
def test_only_a_nought_or_what_is_not_there_reads_as_sound_memory(sound, name, odd):
    subject = Machines(Machine(Path("/nowhere"), Path("/nowhere")), Naming({}))
    subject.say(changed(sound, 2, {name: odd}))
    pci = subject.told.gpus[2].pci
    mine = [each for each in subject.look("memory") if each.part == subject.naming.gpu(pci)]
    absent = isinstance(odd, list) and len(odd) == 1 and Mute(odd[0]).absent
    well = odd is False or (isinstance(odd, int) and odd == 0) or absent
    assert all(each.verdict is Verdict.OK for each in mine) is well


@settings(max_examples=30)
@given(st.data())
def test_no_value_of_any_kind_raises(sound, data):
    documents = [json.loads(line) for line in sound.splitlines()]
    mine = documents[3]
    place = data.draw(st.sampled_from(["values", "links"]))
    values = mine["values"] if place == "values" else mine["links"][4]
    values[data.draw(st.sampled_from(sorted(values)))] = data.draw(ODD)
    subject = Machines(Machine(Path("/nowhere"), Path("/nowhere")), Naming({}))
    subject.say("".join(json.dumps(line) + "\n" for line in documents))
    for minute in range(2):
        for name in NVML:
            assert subject.look(name, minute)


def test_a_value_that_is_not_there_is_mute(sound):
    gpu = replace(read(sound).gpus[0], values={})
    assert gpu.number("power") == Mute(999)
