"""The child reads through the real binding what the library says, and what it cannot is said."""

import ctypes

import pynvml
import pytest

from probes.nvml import asks
from probes.nvml.view import FUNCTION_NOT_FOUND, GPU_IS_LOST, LIBRARY_NOT_FOUND, Mute
from tests.nvml.fake import build


def look(subject):
    subject.begin()
    return subject.nvml()


def test_every_value_of_a_healthy_machine_is_what_the_driver_was_told(subject):
    view = look(subject)
    assert (view.whole, view.count, view.driver) == (True, 8, "580.65.06")
    gpu = view.gpus[3]
    assert gpu.pci == "0000:83:00"
    assert gpu.number("recovery_action") == 0
    assert gpu.value("ecc_mode") == (1, 1)
    assert gpu.value("fabric") == (3, 0, 0, 1)
    assert (gpu.number("margin"), gpu.number("power_limit")) == (38, 700_000)
    assert len(gpu.links) == 18
    assert gpu.links[17]["speed"] == 26_562


def test_the_world_may_change_while_the_probe_runs(subject, state):
    assert look(subject).gpus[5].number("ecc_uncorrected") == 0
    state.put({"gpu.5.field.4": 7, "gpu.5.link.2.field.165": 0, "gpu.6.margin": -3})
    view = look(subject)
    assert view.gpus[5].number("ecc_uncorrected") == 7
    assert [link["state"] for link in view.gpus[5].links[:4]] == [1, 1, 0, 1]
    assert view.gpus[6].number("margin") == -3


def test_the_fake_has_every_symbol_that_the_child_uses(subject, state):
    said = {f"gpu.*.field.{number}": 1 for number in asks.FIELDS.values()}
    said |= {f"gpu.*.link.*.field.{number}": 1 for number in asks.LINK_FIELDS.values()}
    said |= {"gpu.*.field.170": 2, "gpu.*.link.*.field.171": 1}
    state.put(said)
    view = look(subject)
    values = [*view.gpus[0].values.items()]
    values += [each for link in (*view.gpus[0].links, *view.gpus[0].c2c) for each in link.items()]
    assert [name for name, value in values if isinstance(value, Mute)] == []


def test_what_an_older_driver_lacks_is_absent_and_no_fault(subject, tmp_path, monkeypatch):
    lacking = ("nvmlDeviceGetSramEccErrorStatus", "nvmlDeviceGetUnrepairableMemoryFlag_v1")
    library = build(tmp_path / "older", lacking)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    gpu = look(subject).gpus[0]
    for name in ("sram_threshold", "unrepairable"):
        assert gpu.value(name) == Mute(FUNCTION_NOT_FOUND)
        assert gpu.value(name).absent


def test_a_driver_without_the_summary_still_tells_its_fabric(subject, state):
    state.put({"gpu.*.fabric_version": 2})
    assert look(subject).gpus[0].value("fabric") == (3, 0, 0, 0)


def test_a_lost_gpu_leaves_the_others_readable(subject, state):
    state.put({"gpu.2.handle.return": GPU_IS_LOST})
    view = look(subject)
    assert view.gpus[2].handle == Mute(GPU_IS_LOST)
    assert [gpu.handle for gpu in view.gpus if gpu.index != 2] == [None] * 7


def test_a_gpu_that_goes_between_two_calls_loses_only_its_own_values(subject, state):
    state.put({"gpu.4.fields.return": GPU_IS_LOST, "gpu.4.power.return": GPU_IS_LOST})
    gpu = look(subject).gpus[4]
    assert gpu.value("recovery_action") == Mute(GPU_IS_LOST)
    assert not gpu.value("power").absent
    assert gpu.value("ecc_mode") == (1, 1)


@pytest.mark.parametrize("count", ["7", "0"])
def test_a_short_count_is_told_as_it_is(subject, state, count):
    state.say(count=count)
    view = look(subject)
    assert (view.count, len(view.gpus), view.whole) == (int(count), int(count), True)


@pytest.mark.parametrize("code", [9, 18, 999])
def test_a_driver_that_refuses_to_begin_says_why(subject, state, code):
    state.put({"init.return": code})
    view = look(subject)
    assert (view.init, view.gpus, view.whole) == (Mute(code), (), False)


def test_without_a_library_there_is_nothing_to_ask(subject, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert look(subject).init == Mute(LIBRARY_NOT_FOUND)


def test_a_crash_within_the_library_ends_the_child_alone(subject, state):
    state.put({"gpu.1.power.crash": ""})
    view = look(subject)
    assert not view.whole
    assert [gpu.index for gpu in view.gpus] == [0]


def test_a_hang_within_the_library_keeps_what_was_learnt_before_it(subject, state, monkeypatch):
    monkeypatch.setattr("probes.checks.subject.TOOL_LIMIT", 3.0)
    state.put({"gpu.6.persistence.hang": ""})
    view = look(subject)
    assert view.hung
    assert [gpu.index for gpu in view.gpus] == [0, 1, 2, 3, 4, 5]


def test_structs_are_laid_out_as_the_binding_has_them(library):
    fake = ctypes.CDLL(str(library))
    fake.fake_nvml_layout.restype = ctypes.c_char_p
    for line in fake.fake_nvml_layout().decode().splitlines():
        name, number = line.split()
        struct, _, member = name.partition(".")
        kind = getattr(pynvml, struct)
        found = getattr(kind, member).offset if member else ctypes.sizeof(kind)
        assert found == int(number), name


def test_the_library_of_the_hosts_root_is_read_though_the_hosts_libc_is_another(
    subject, library, monkeypatch
):
    monkeypatch.delenv("LD_LIBRARY_PATH")
    place = subject.machine.root / "usr/lib/x86_64-linux-gnu"
    place.mkdir(parents=True)
    (place / "libc.so.6").write_text("of another release")
    (place / library.name).write_bytes(library.read_bytes())
    assert look(subject).count == 8
