"""The device's ways, files and FIFOs, and the cursor: nothing twice, every loss counted."""

import errno
import os

import pytest

from probes.kmsg import BUFFER, BUFFER_LIMIT, Cursor, Device, follow, open_source
from tests.agent.fake_machine import FakeMachine


def record(sequence: int, text: str = "hello", priority: int = 6) -> bytes:
    return f"{priority},{sequence},{sequence * 10},-;{text}".encode()


class ScriptedDevice:
    """Stands in for `os.read` on the device: answers are bytes or errno values, then EAGAIN."""

    def __init__(self, *answers: bytes | int) -> None:
        self.answers = list(answers)
        self.sizes: list[int] = []

    def read(self, descriptor: int, size: int) -> bytes:
        self.sizes.append(size)
        answer = self.answers.pop(0) if self.answers else errno.EAGAIN
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return answer


@pytest.fixture
def scripted(monkeypatch):
    def device(*answers: bytes | int) -> tuple[Device, ScriptedDevice]:
        script = ScriptedDevice(*answers)
        monkeypatch.setattr("os.read", script.read)
        return Device(-1), script

    return device


def test_the_device_gives_one_record_a_read_until_there_is_none(scripted):
    device, _ = scripted(record(1), record(2))
    assert device.take(10) == [record(1), record(2)]
    assert device.take(10) == []


def test_a_batch_is_bounded(scripted):
    device, _ = scripted(*(record(n) for n in range(100)))
    assert len(device.take(16)) == 16


def test_overwritten_records_are_counted_and_the_follower_goes_on(scripted):
    device, _ = scripted(record(5), errno.EPIPE, record(50), record(51))
    cursor = Cursor("b")
    new = follow(device.take(10), cursor)
    assert [each.record.sequence for each in new] == [5, 50, 51]
    assert cursor.lost == 44


def test_a_device_that_only_overruns_does_not_hold_the_reader(scripted):
    device, _ = scripted(*[errno.EPIPE] * 100)
    with pytest.raises(OSError, match="pipe"):
        device.take(16)


def test_a_record_larger_than_the_buffer_is_read_with_a_larger_one(scripted):
    device, script = scripted(errno.EINVAL, errno.EINVAL, record(1))
    assert device.take(10) == [record(1)]
    assert script.sizes[:3] == [BUFFER, 2 * BUFFER, 4 * BUFFER]


def test_a_buffer_that_is_never_large_enough_is_an_error_and_not_a_loop(scripted):
    device, script = scripted(*[errno.EINVAL] * 100)
    with pytest.raises(OSError, match="Invalid"):
        device.take(10)
    assert max(script.sizes) <= BUFFER_LIMIT


def test_what_was_read_before_an_error_is_not_thrown_away(scripted):
    device, _ = scripted(record(1), errno.EIO)
    assert device.take(10) == [record(1)]


@pytest.mark.parametrize(
    ("before", "sequences", "new", "lost", "behind"),
    [
        (-1, [0, 1, 2], [0, 1, 2], 0, 0),
        (-1, [700, 701], [700, 701], 0, 0),
        (5, [4, 5, 6], [6], 0, 0),
        (5, [3, 4], [], 0, 2),
        (5, [8, 9], [8, 9], 2, 0),
        (5, [6, 6, 7], [6, 7], 0, 0),
    ],
)
def test_a_record_is_new_once_and_gaps_are_losses(before, sequences, new, lost, behind):
    cursor = Cursor("b", sequence=before, first=before)
    followed = follow([record(each) for each in sequences], cursor)
    assert [each.record.sequence for each in followed if each.new] == new
    assert (cursor.lost, cursor.behind) == (lost, behind)


@pytest.mark.parametrize(("first", "whole"), [(0, True), (1, True), (2, False), (90_000, False)])
def test_a_log_is_whole_when_it_was_seen_from_the_start_of_the_boot(first, whole):
    cursor = Cursor("b")
    assert not cursor.whole
    follow([record(first), record(first + 1)], cursor)
    assert cursor.whole is whole


@pytest.mark.parametrize("priority", [8, 12, 15, 8 * 23 + 6])
def test_what_user_space_wrote_is_no_evidence_but_moves_the_cursor(priority):
    cursor = Cursor("b", sequence=1, first=0)
    assert follow([record(2, priority=priority)], cursor) == []
    assert (cursor.sequence, cursor.foreign) == (2, 1)


def test_the_test_switch_lets_user_space_in_as_if_the_kernel_had_written():
    (each,) = follow([record(2, "NVRM: x", priority=12)], Cursor("b"), accept_user_space=True)
    assert each.line == b"4,2,20,-;NVRM: x"


@pytest.mark.parametrize("junk", [b"", b"\xff\xfe", b"no record", b"6,x,1,-;y", b"6,1", b";" * 999])
def test_junk_is_counted_and_never_raises(junk):
    cursor = Cursor("b", sequence=1, first=0)
    assert follow([junk, record(2)], cursor)[0].record.sequence == 2
    assert cursor.garbled == 1


def test_device_tags_are_neither_records_nor_junk():
    cursor = Cursor("b")
    (each,) = follow([record(1) + b"\n SUBSYSTEM=pci\n DEVICE=+pci:0000:52:00.0"], cursor)
    follow([b" SUBSYSTEM=pci"], cursor)
    assert each.line == record(1)
    assert cursor.garbled == 0


def drain(source) -> list[bytes]:
    taken = []
    while more := source.take(8):
        taken += more
    return taken


def test_a_file_is_tailed_and_half_a_line_waits_for_its_end(tmp_path):
    path = tmp_path / "kmsg"
    path.write_bytes(record(0) + b"\n" + record(1)[:5])
    source = open_source(path)
    assert drain(source) == [record(0)]
    with path.open("ab") as file:
        file.write(record(1)[5:] + b"\n")
    assert drain(source) == [record(1)]
    source.close()


@pytest.mark.parametrize("way", ["cut", "replaced"])
def test_a_file_that_begins_anew_is_read_from_its_start(tmp_path, way):
    path = tmp_path / "kmsg"
    path.write_bytes(b"".join(record(n) + b"\n" for n in range(20)))
    source = open_source(path)
    assert len(drain(source)) == 20
    if way == "replaced":
        path.unlink()
    path.write_bytes(record(0, "new boot") + b"\n")
    assert drain(source) == [record(0, "new boot")]
    source.close()


def test_a_line_beyond_all_bounds_is_dropped_and_the_next_one_is_read(tmp_path):
    path = tmp_path / "kmsg"
    path.write_bytes(b"x" * (3 * BUFFER_LIMIT) + b"\n" + record(1) + b"\n")
    source = open_source(path)
    taken = []
    for _ in range(3 * BUFFER_LIMIT // BUFFER + 2):
        taken += source.take(8)
    assert taken == [record(1)]
    source.close()


def test_a_fifo_outlives_its_writers(tmp_path):
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    source = open_source(path)
    for sequence in range(2):
        with path.open("wb") as writer:
            writer.write(record(sequence) + b"\n")
        source.wait(5.0)
        assert source.take(8) == [record(sequence)]
    assert source.take(8) == []
    source.close()


def test_a_log_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_source(FakeMachine(tmp_path / "m").root / "dev/nothing")
