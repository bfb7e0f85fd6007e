"""A child that hangs is a finding, and hangs nobody else."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from probes.child import OUTPUT_LIMIT, Tool
from probes.files import read_files

PYTHON = [sys.executable, "-I", "-S", "-c"]
SHORT = 0.5
ALWAYS = 20.0


def script(text: str) -> list[str]:
    return ["/bin/sh", "-c", text]


@pytest.fixture
def tool():
    tool = Tool("tool")
    yield tool
    if tool.outstanding:
        os.killpg(tool.outstanding, signal.SIGKILL)
        assert tool._left is not None
        tool._left.wait(5)


def test_status_and_both_streams_are_kept(tool):
    ended = tool.run(script("echo out; echo err >&2; exit 7"), ALWAYS)
    assert (ended.status, ended.output, ended.errors) == (7, "out\n", "err\n")
    assert not ended.hung


def test_a_tool_that_is_not_there_reads_like_the_shell_says_it(tool):
    ended = tool.run(["/nowhere/tool"], ALWAYS)
    assert ended.status == 127
    assert "/nowhere/tool" in ended.errors


def test_output_is_bounded_and_does_not_block_the_child(tool):
    ended = tool.run([*PYTHON, f"print('x' * {4 * OUTPUT_LIMIT})"], ALWAYS)
    assert ended.status == 0
    assert len(ended.output) == OUTPUT_LIMIT


def test_a_slow_child_is_asked_to_end_before_anything_else(tool):
    ended = tool.run(script("trap 'echo asked; exit 3' TERM; while :; do sleep 0.05; done"), SHORT)
    assert (ended.status, ended.output, ended.hung) == (3, "asked\n", True)


def test_what_was_said_before_the_hang_is_kept(tool):
    ended = tool.run(script("echo half; exec sleep 60"), SHORT)
    assert (ended.output, ended.hung) == ("half\n", True)


def test_a_grandchild_that_holds_the_pipe_does_not_hold_us(tool):
    ended = tool.run(script("sleep 60 & echo $!"), ALWAYS)
    assert (ended.status, ended.hung) == (0, False)
    os.kill(int(ended.output), signal.SIGKILL)


def test_a_grandchild_that_floods_the_pipe_does_not_hold_us(tool):
    ended = tool.run(script("yes & echo $! >&2"), ALWAYS)
    assert (ended.status, ended.hung) == (0, False)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(ended.errors.split()[0]), signal.SIGKILL)


STUBBORN = script("trap '' TERM; echo deaf; while :; do sleep 9; done")


def test_a_child_that_ignores_the_request_is_left_behind_and_blocks_the_next(tool):
    first = tool.run(STUBBORN, 1.0)
    assert (first.status, first.output, first.hung) == (None, "deaf\n", True)
    left = tool.outstanding
    assert left
    second = tool.run(script("echo never"), ALWAYS)
    assert (second.hung, second.waiting, second.output) == (True, True, "")
    assert tool.outstanding == left


def test_a_child_left_behind_is_killed_only_after_its_limit_once_more(tool):
    tool.run(STUBBORN, SHORT)
    left = tool.outstanding
    assert left
    tool._kill_at = 0.0
    assert tool.run(script("echo never"), ALWAYS).waiting
    os.waitid(os.P_PID, left, os.WEXITED | os.WNOWAIT)
    assert tool.run(script("echo again"), ALWAYS).output == "again\n"


def test_locks_stay_held_as_long_as_the_child(tool, tmp_path):
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    tool.run(STUBBORN, SHORT, keep_open=(descriptor,))
    os.close(descriptor)
    with path.open("r+") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert tool.outstanding
        os.killpg(tool.outstanding, signal.SIGKILL)
        fcntl.flock(other, fcntl.LOCK_EX)


def test_files_are_read_in_a_child_with_their_problems(tool, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config").write_bytes(name.encode() * 100)
    (tmp_path / "c/config").mkdir(parents=True)
    seen = read_files(tool, [f"{tmp_path}/*/config"], 4)
    assert seen.contents == {tmp_path / "a/config": b"aaaa", tmp_path / "b/config": b"bbbb"}
    assert list(seen.problems) == [tmp_path / "c/config"]


@pytest.fixture
def frozen(tmp_path):
    """A file on a frozen filesystem: whoever writes there sleeps uninterruptibly until it thaws."""
    if os.geteuid() != 0:
        pytest.skip("needs root for a loop mount")
    image, mount = tmp_path / "image", tmp_path / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(16 * 1024 * 1024)
    make, attach = ["mkfs.ext4", "-q"], ["mount", "-o", "loop"]
    for command in ([*make, str(image)], [*attach, str(image), str(mount)]):
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=30)
        except (OSError, subprocess.SubprocessError) as problem:
            pytest.skip(f"no loop mount here: {problem}")
    subprocess.run(["fsfreeze", "--freeze", str(mount)], check=True, timeout=30)
    thaw = ["fsfreeze", "--unfreeze", str(mount)]
    try:
        yield mount, thaw
    finally:
        subprocess.run(thaw, check=False, capture_output=True, timeout=30)
        subprocess.run(["umount", "-l", str(mount)], check=True, timeout=30)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.root
def test_a_child_in_uninterruptible_sleep_is_left_behind_and_is_gone_when_it_wakes(tool, frozen):
    mount, thaw = frozen
    returned = threading.Event()
    ended = []

    def run() -> None:
        ended.append(tool.run(script(f"echo x > {mount}/x"), SHORT))
        returned.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert returned.wait(10), "waits for a child that cannot end"
    thread.join()
    assert (ended[0].status, ended[0].hung) == (None, True)
    left = tool.outstanding
    assert left
    assert state_of(left) == "D"
    tool._kill_at = 0.0
    assert tool.run(script("echo never"), ALWAYS).waiting
    assert state_of(left) == "D", "a KILL does not help, and nothing waited for it"
    subprocess.run(thaw, check=True, timeout=30)
    os.waitid(os.P_PID, left, os.WEXITED | os.WNOWAIT)
    assert tool.run(script("echo again"), ALWAYS).output == "again\n"


def test_tools_that_hang_do_not_delay_each_other():
    tools = [Tool(str(number)) for number in range(5)]
    began = time.monotonic()
    threads = [threading.Thread(target=each.run, args=(STUBBORN, SHORT)) for each in tools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each.outstanding for each in tools)
    assert time.monotonic() - began < ALWAYS
    for each in tools:
        assert each._left is not None
        os.killpg(each._left.pid, signal.SIGKILL)
        each._left.wait(5)
