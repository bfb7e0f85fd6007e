"""Settings as a pool wants them: met, missed, pending, untold, unasked, and the set of GPUs."""

import pytest

from fleet.finding import Verdict
from probes import expectations, topology
from probes.checks import settings
from probes.checks.subject import Subject
from probes.machine import Machine
from probes.nvml.view import GpuView, Mute, Value, View
from probes.parts import Gpu, Naming

GPUS = {"0000:53:00": Gpu(0, "aaaa0000"), "0000:63:00": Gpu(1, "bbbb1111")}
SOUND: dict[str, Value] = {"persistence": 1, "ecc_mode": (1, 1), "mig_mode": (0, 0)}


@pytest.fixture
def subject(tmp_path):
    return Subject(Machine(tmp_path, tmp_path / "state"), Naming(GPUS))


def look(subject, **values):
    gpus = tuple(
        GpuView(index, pci, values={**SOUND, **(values if index else {})})
        for index, pci in enumerate(GPUS)
    )
    subject._view = View(count=2, gpus=gpus, whole=True)
    return {
        (each.part, each.fault or each.verdict.value, each.code)
        for each in settings.check(subject)
        if each.verdict is not Verdict.OK
    }


def test_where_nobody_said_what_is_wanted_nothing_is_said(subject):
    look(subject, persistence=0)
    assert settings.check(subject) == ()


@pytest.mark.parametrize(
    ("name", "word", "values", "code"),
    [
        (settings.PERSISTENCE, "on", {"persistence": 0}, "settings:persistence"),
        (settings.ECC, "on", {"ecc_mode": (0, 0)}, "settings:ecc"),
        (settings.ECC, "ON", {"ecc_mode": (0, 1)}, "settings:ecc"),
        (settings.MIG, "off", {"mig_mode": (1, 0)}, "settings:mig"),
    ],
)
def test_a_setting_that_is_not_as_wanted_is_a_mismatch_until_it_is(
    subject, monkeypatch, name, word, values, code
):
    monkeypatch.setenv(name, word)
    assert look(subject, **values) == {("gpu:1", "config-mismatch", code)}
    assert look(subject) == set()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (Mute(999), ("gpu:1", "unknown", "nvml:999")),
        (Mute(15), ("gpu:1", "gpu-lost", "nvml:gpu-lost")),
        (Mute(3), ("gpu:1", "unknown", "nvml:not-supported")),
        ("on", ("gpu:1", "unknown", "nvml:999")),
    ],
)
def test_a_gpu_that_cannot_tell_its_mode_has_none_switched_off(
    subject, monkeypatch, said, expected
):
    monkeypatch.setenv(settings.ECC, "off")
    monkeypatch.delenv(settings.ECC)
    monkeypatch.setenv(settings.ECC, "on")
    assert look(subject, ecc_mode=said) == {expected}


def test_a_driver_that_hangs_is_the_finding_and_no_mismatch(subject, monkeypatch):
    monkeypatch.setenv(settings.ECC, "on")
    subject._view = View(hung=True)
    assert [each.fault for each in settings.check(subject)] == ["driver-hung"]


def test_a_word_that_is_neither_is_said(subject, monkeypatch):
    monkeypatch.setenv(settings.ECC, "yes")
    assert look(subject) == {("host", "unknown", "settings:configuration")}


@pytest.fixture
def pinned(subject, monkeypatch):
    monkeypatch.setenv(settings.SAME_GPUS, "on")
    return subject


def test_the_first_set_is_remembered_and_another_gpu_in_its_place_is_a_change(pinned):
    assert look(pinned) == set()
    other = {**GPUS, "0000:63:00": Gpu(1, "cccc2222")}
    pinned.naming = Naming(other)
    assert look(pinned) == {("host", "config-mismatch", "settings:topology")}
    topology.place(pinned.machine).unlink()
    assert look(pinned) == set()
    pinned.naming = Naming(GPUS)
    assert look(pinned) == {("host", "config-mismatch", "settings:topology")}


def test_a_gpu_that_is_gone_or_has_no_id_is_no_change(pinned):
    look(pinned)
    pinned.naming = Naming({"0000:53:00": Gpu(0)})
    assert look(pinned) == set()


def test_a_first_boot_that_is_short_is_not_what_is_remembered(pinned, monkeypatch):
    monkeypatch.setenv(expectations.GPUS, "2")
    pinned.naming = Naming({"0000:53:00": Gpu(0, "aaaa0000")})
    assert look(pinned) == set()
    pinned.naming = Naming(GPUS)
    assert look(pinned) == set()
    assert topology.recall(pinned.machine) == {pci: gpu.id for pci, gpu in GPUS.items()}


@pytest.mark.parametrize("text", ["", "[]", '{"0000:53:00": 3}', "\x00"])
def test_a_broken_memory_is_unknown(pinned, text):
    place = topology.place(pinned.machine)
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert look(pinned) == {("host", "unknown", "settings:topology-unreadable")}
