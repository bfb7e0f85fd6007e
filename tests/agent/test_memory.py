"""What the agent remembers: whole or not at all, at every point where it may be killed."""

import contextlib
import json
import os
from datetime import UTC, datetime

import pytest

from fleet.fault import Advice, FaultName, Severity
from fleet.part import Part
from probes.agent.memory import FILE, Doubt, Memory, load, save, sweep
from probes.evidence import Claim
from probes.fault_set import FaultSet
from probes.kmsg import Cursor
from probes.parts import Gpu

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LATER = ("processes", "failures", "kept")
"""What came to the file after its first version."""


def memory(sequence: int = 7) -> Memory:
    faults = FaultSet()
    part, name = Part("gpu:3"), FaultName.UNCONTAINED_MEMORY
    claim = Claim(part, name, "xid:95", Advice.RESET_GPU, Severity.FATAL, sub="a/b")
    faults.claim(claim, sequence, NOW)
    cursor = Cursor("boot-1", sequence=sequence, first=0, lost=2, garbled=3, foreign=4)
    return Memory(cursor, faults, {"0000:52:00": Gpu(3, "7f3a9c01")}, Doubt.LOG_LOST, 5)


def test_what_was_saved_is_remembered(tmp_path):
    save(memory(), tmp_path, "n1")
    assert load(tmp_path, "boot-1", "n1") == memory()


def test_a_new_boot_ends_the_faults_of_the_log_and_begins_it_anew(tmp_path):
    save(memory(), tmp_path, "n1")
    after = load(tmp_path, "boot-2", "n1")
    assert after == Memory(Cursor("boot-2"))


def test_memory_that_was_never_there_is_unknown(tmp_path):
    assert load(tmp_path, "boot-1", "n1").doubt is Doubt.LOST


def test_another_nodes_memory_is_unknown(tmp_path):
    save(memory(), tmp_path, "n2")
    assert load(tmp_path, "boot-1", "n1").doubt is Doubt.FOREIGN


def test_memory_of_another_version_is_unknown(tmp_path):
    save(memory(), tmp_path, "n1")
    fields = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**fields, "version": 2}))
    assert load(tmp_path, "boot-1", "n1").doubt is Doubt.FOREIGN


def test_memory_cut_anywhere_is_unknown_and_never_raises(tmp_path):
    save(memory(), tmp_path, "n1")
    text = (tmp_path / FILE).read_bytes()
    for length in range(len(text)):
        (tmp_path / FILE).write_bytes(text[:length])
        assert load(tmp_path, "boot-1", "n1").doubt is Doubt.BROKEN


def test_memory_with_any_field_missing_or_mistyped_is_unknown(tmp_path):
    save(memory(), tmp_path, "n1")
    fields = json.loads((tmp_path / FILE).read_text())
    for name in fields:
        missing = {k: v for k, v in fields.items() if k != name}
        for broken in (*[missing] * (name not in LATER), {**fields, name: ["x"]}):
            (tmp_path / FILE).write_text(json.dumps(broken))
            doubt = load(tmp_path, "boot-1", "n1").doubt
            assert doubt in (Doubt.BROKEN, Doubt.FOREIGN), name


def test_what_an_agent_before_this_one_did_not_write_is_none_and_no_doubt(tmp_path):
    save(memory(), tmp_path, "n1")
    fields = json.loads((tmp_path / FILE).read_text())
    for name in LATER:
        del fields[name]
    for each in fields["standing"]:
        del each["pods"]
    (tmp_path / FILE).write_text(json.dumps(fields))
    assert load(tmp_path, "boot-1", "n1") == memory()


class Killed(BaseException):
    """SIGKILL as a test can raise it."""


STEPS = ["open", "fdopen", "fsync", "replace"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
def test_killed_at_any_point_of_saving_it_remembers_the_old_or_the_new(
    tmp_path, monkeypatch, step, when, nth
):
    save(memory(7), tmp_path, "n1")
    real = getattr(os, step)
    calls = 0

    def killed(*arguments, **more):
        nonlocal calls
        calls += 1
        if calls == nth and when == "before":
            raise Killed
        result = real(*arguments, **more)
        if calls == nth:
            if step == "fdopen":
                result.close()
            raise Killed
        return result

    with monkeypatch.context() as patch:
        patch.setattr(f"os.{step}", killed)
        patch.setattr("pathlib.Path.unlink", lambda *_, **__: None)
        with contextlib.suppress(Killed):
            save(memory(8), tmp_path, "n1")
    assert load(tmp_path, "boot-1", "n1") in (memory(7), memory(8))
    sweep(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [FILE]
