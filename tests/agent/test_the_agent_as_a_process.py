"""The agent as it runs on a node: started, killed, started again; and this machine's own log."""

import os
import signal
import uuid
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from fleet.condition import parse_message
from fleet.part import Part
from probes.agent.run import ACCEPT_USER_SPACE
from probes.records import Kind, Record, write_record
from tests.agent.fake_machine import BOOT, FakeMachine, recovery, xid
from tests.agent.process import end, remembered, start_agent, wait_for
from tests.agent.server import ApiStand


@pytest.fixture
def fake(tmp_path):
    return FakeMachine(tmp_path / "m")


@pytest.fixture
def stand():
    stand = ApiStand()
    yield stand
    stand.close()


def reached(fake: FakeMachine, sequence: int) -> bool:
    return int(remembered(fake.machine.state).get("sequence", 0)) > sequence


def counts(stand: ApiStand, kind: str = "Memory") -> dict[str, int]:
    said = stand.conditions.get(f"gpumend.io/{kind}", {}).get("message")
    return {each.part: each.count for each in parse_message(said).faults} if said else {}


def test_a_line_becomes_a_condition_and_the_drivers_word_ends_it(fake, stand):
    agent = start_agent(fake.root, stand.url)
    try:
        stand.wait_until(lambda: len(stand.conditions) == 9 and "agent-n1" in stand.leases)
        fake.log(xid("0000:52:00", 95))
        stand.wait_until(lambda: counts(stand) == {"gpu:0": 1})
        fake.log(recovery("0000:52:00", 0))
        stand.wait_until(lambda: stand.status("Memory") == ("True", "Healthy"))
    finally:
        assert end(agent) == 0
    assert {each["status"] for each in stand.conditions.values()} == {"True"}


def test_killed_in_a_storm_it_counts_every_line_once(fake, stand):
    agent = start_agent(fake.root, stand.url)
    try:
        for round_ in range(1, 4):
            fake.log(*[xid("0000:52:00", 95)] * 1000)
            wait_for(partial(reached, fake, round_ * 1000 - 500))
            end(agent, signal.SIGKILL)
            agent = start_agent(fake.root, stand.url)
        wait_for(lambda: remembered(fake.machine.state)["sequence"] == fake.sequence)
        (standing,) = remembered(fake.machine.state)["standing"]
        assert standing["count"] == 3000
    finally:
        end(agent)


def test_a_recorded_reset_ends_the_fault_and_a_boot_ends_the_next(fake, stand):
    agent = start_agent(fake.root, stand.url)
    try:
        last = fake.log(xid("0000:52:00", 95), xid("0000:53:00", 79))
        stand.wait_until(lambda: stand.status("GPU") == ("False", "GpuLost"))
        record = Record("op", Kind.RESET, BOOT, (Part("gpu:0"),), last, datetime.now(UTC))
        write_record(fake.machine.state, record)
        stand.wait_until(lambda: stand.status("Memory") == ("True", "Healthy"))
        assert stand.status("GPU") == ("False", "GpuLost")
        fake.boot("boot-2")
        stand.wait_until(lambda: stand.status("GPU") == ("True", "Healthy"))
        fake.log(xid("0000:52:00", 48))
        stand.wait_until(lambda: counts(stand) == {"gpu:0": 1})
        message = stand.conditions["gpumend.io/Memory"]["message"]
        assert parse_message(message).boot_id == "boot-2"
    finally:
        end(agent)


def test_without_a_server_to_tell_it_refuses_to_start(fake):
    agent = start_agent(fake.root, "")
    assert agent.wait(15) == 2


KMSG = Path("/dev/kmsg")
WRITABLE = os.geteuid() == 0 and KMSG.is_char_device() and os.access(KMSG, os.W_OK)


@pytest.mark.root
@pytest.mark.skipif(not WRITABLE, reason="needs root and a /dev/kmsg that can be written")
def test_the_real_device_is_evidence_only_under_the_test_switch(stand, tmp_path):
    bus = f"{uuid.uuid4().int % 0xFFFF:04x}:{uuid.uuid4().int % 0xFF:02x}:1d"
    part = f"pci:{bus}"
    deaf = ApiStand()
    switched, honest = tmp_path / "switched" / "state", tmp_path / "honest" / "state"
    switched.mkdir(parents=True)
    honest.mkdir(parents=True)
    agents = [
        start_agent(Path("/"), stand.url, switched, **{ACCEPT_USER_SPACE: "1"}),
        start_agent(Path("/"), deaf.url, honest),
    ]
    try:
        wait_for(lambda: remembered(switched) and remembered(honest))
        with KMSG.open("wb", buffering=0) as device:
            device.write(f"<3>{xid(bus, 95)}\n".encode())
        stand.wait_until(lambda: counts(stand).get(part) == 1)
        (mine,) = [each for each in remembered(switched)["standing"] if each["part"] == part]
        wait_for(lambda: remembered(honest)["sequence"] >= mine["sequence"])
        assert remembered(honest)["foreign"] > 0
        assert part not in str(remembered(honest)["standing"])
        assert part not in counts(deaf)
        assert "TEST SWITCH" in (tmp_path / "switched" / "agent.log").read_text()
    finally:
        for agent in agents:
            end(agent)
        deaf.close()
