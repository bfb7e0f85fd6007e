"""Programs are started until ready, started again when they fall, and never left behind."""

import asyncio
import os
import sys

import pytest

from simulator.demo.supervisor import NotStarted, Program, Supervisor

SLEEPER = "import time; print('ready now', flush=True); time.sleep(60)"


def program(code, name="p", ready="ready", within=10.0):
    return Program(name, [sys.executable, "-S", "-c", code], ready, within=within)


class Said(list[str]):
    """What the supervisor told, and an event for the first of it."""

    def __init__(self) -> None:
        super().__init__()
        self.something = asyncio.Event()

    def tell(self, sentence: str) -> None:
        self.append(sentence)
        self.something.set()


@pytest.fixture
async def said():
    return Said()


@pytest.fixture
async def supervisor(tmp_path, said):
    async with Supervisor(tmp_path / "logs", said.tell) as running:
        yield running


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_program_that_says_it_is_ready_runs_until_the_end_of_the_supervisor(tmp_path):
    async with Supervisor(tmp_path / "logs", print) as supervisor:
        code = f"import os; print('pid', os.getpid(), 'ready', flush=True); {SLEEPER}"
        running = await supervisor.start(program(code))
        pid = int(running.first_ready_line.split()[1])
        assert alive(pid)
    assert not alive(pid)


async def test_one_that_ends_before_it_is_ready_is_told_with_its_last_words(supervisor):
    with pytest.raises(NotStarted, match="no such database"):
        await supervisor.start(program("raise SystemExit('no such database')"))


async def test_one_that_is_never_ready_is_given_up_and_ended(supervisor):
    with pytest.raises(NotStarted, match="still thinking"):
        await supervisor.start(
            program("import time; print('still thinking', flush=True); time.sleep(60)", within=1.0)
        )


async def test_one_that_falls_is_started_again_and_that_is_said(supervisor, said, tmp_path):
    mark = tmp_path / "mark"
    code = f"""
import pathlib, sys, time
mark = pathlib.Path({str(mark)!r})
again = mark.exists()
mark.write_text('x')
print('ready', flush=True)
time.sleep(60 if again else 0.1)
sys.exit(3)
"""
    await supervisor.start(program(code))
    await asyncio.wait_for(said.something.wait(), 20)
    assert "ended by itself (status 3)" in said[0]


async def test_one_that_is_killed_stays_down_until_it_is_started(supervisor, said):
    running = await supervisor.start(program(SLEEPER))
    running.kill()
    await running.ended()
    await running.start()
    assert said == []
    assert running.log.read_text().count("ready now") == 2
