"""Who plays in a run beside the machines: the provider, its gate, the receiver, and the picture."""

import asyncio
import json
import os

import aiohttp
import pytest
from rich.console import Console

from simulator.demo.claims import proven, queued, swept, tripped, untouched
from simulator.demo.gate import Gate
from simulator.demo.provider import Owned, Yard
from simulator.demo.receiver import Receiver
from simulator.demo.screen import Screen, state_of
from simulator.hardware.power import Power, Signal, Switch
from simulator.observer.promise import Promises
from simulator.observer.transcript import read_change, read_notice
from simulator.provider import ProviderServer
from simulator.provider.hands import Failure
from tests.simulator.transcripts import Log, copy


def switch(place, on=True):
    place.mkdir()
    made = Switch(place)
    made.create(on)
    return made


def ordered(change, name="o-1", node="n1"):
    return {"id": name, "change": change, "machine": {"node": node}}


@pytest.fixture
def yard(tmp_path):
    """A machine n1, a spare one n2, and a hidden one that has the name n1, too."""
    machines = []
    for machine, node, more in (("n1", "n1", {}), ("n2", "n2", {"spare": True}), ("b", "n1", {})):
        switch(tmp_path / machine, on=machine == "n1")
        place = str(tmp_path / machine)
        machines.append(Owned(node, f"sim://{machine}", place, hidden=machine == "b", **more))
    return Yard(machines, tmp_path / "journal")


class Player:
    """Plays the machine of a switch as far as its power goes."""

    def __init__(self, made):
        self.made = made
        self.pipe = os.open(made.pipe, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self.pipe, self.hear)
        self.heard: list[str] = []
        self.told = asyncio.Event()

    def hear(self):
        self.heard += os.read(self.pipe, 100).decode().split()
        self.told.set()
        self.made.show(Power.OFF if self.heard[-1] == Signal.CUT else Power.ON)


async def test_a_machine_is_given_back_once_and_is_gone(yard, tmp_path):
    player = Player(Switch(tmp_path / "n1"))
    assert await yard.power("n1") == "on"
    for _ in range(2):
        assert await yard.change(ordered("terminate")) == ""
    assert player.heard == [Signal.CUT]
    assert Switch(tmp_path / "n1").state is Power.GONE
    lines = (tmp_path / "journal").read_text().splitlines()
    written = [read_change(line) for line in lines]
    assert [each and (each.verb, each.name) for each in written] == [("terminate", "n1")]
    assert await yard.power("n1") == "off"  # the other machine of this name


async def test_a_launch_switches_on_a_spare_one_and_says_its_name_again_when_asked_again(
    yard, tmp_path
):
    player = Player(Switch(tmp_path / "n2"))
    assert [await yard.change(ordered("launch")) for _ in range(2)] == ["n2", "n2"]
    await asyncio.wait_for(player.told.wait(), 10)
    assert player.heard == [Signal.START]
    with pytest.raises(Failure, match="n1"):
        await yard.change(ordered("launch", "o-2"))


async def test_what_is_told_is_written_down(tmp_path):
    journal = tmp_path / "notices"
    async with Receiver(journal) as receiver, aiohttp.ClientSession() as session:
        await session.post(receiver.url, json={"key": "k", "matter": "storm", "title": "t"})
    noticed = read_notice(journal.read_text())
    assert noticed
    assert (noticed.name, noticed.request["matter"]) == ("k", "storm")


@pytest.mark.parametrize("after", [False, True])
async def test_a_call_to_the_provider_is_held_and_dropped_where_its_client_dies_before_it(
    tmp_path, after
):
    async with ProviderServer(tmp_path) as server:
        server.machines.add("n1")
        async with Gate(server.url, "restart", after) as gate:
            async with aiohttp.ClientSession(gate.url) as session:
                body = {"change": "restart", "machine": {"node": "n1"}}
                call = asyncio.create_task(_put(session, body))
                await asyncio.wait_for(gate.caught.wait(), 10)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            await asyncio.sleep(0.05)  # the connection is seen to be closed
            gate.released.set()
            async with aiohttp.ClientSession(gate.url) as session:
                found = await session.get("/v1/operations/o-1")
                assert found.status == (200 if after else 404)


async def _put(session, body):
    async with session.put("/v1/operations/o-1", json=body) as answer:
        return await answer.text()


RACKS = Promises({"rack": 1}, {"rack": "topology.kubernetes.io/rack"})


def racked():
    log = Log()
    for name in ("n1", "n2"):
        log.node(name, **{"topology.kubernetes.io/rack": "rack-1"}).condition(name=name)
    return log.hold().seen_sick()


def test_waiting_for_a_budget_is_seen_where_one_is_held_while_the_other_is_disrupted():
    log = racked().hold(name="n2", incident="i2").step("reset-gpu", "a")
    assert queued("rack-1")(log.writes, RACKS) == []
    alone = racked().step("reset-gpu", "a")
    assert queued("rack-1")(alone.writes, RACKS) != []


def breaker(log, phase):
    circuit = json.dumps({"scope": "pool/inference", "phase": phase})
    record = {
        "kind": "ConfigMap",
        "metadata": {"name": "gpumend-breaker"},
        "data": {"pool.inference": circuit} if phase else {},
    }
    log.log("watcher", "patch", "configmaps", "gpumend-breaker", {}, copy(record))
    return log


def notice(log):
    said = {"at": log.now.isoformat(), "matter": "storm", "title": "5 of 8 nodes of pool/inference"}
    found = read_notice(json.dumps(said))
    assert found
    log.changes.append(found)
    return log


def test_a_breaker_has_to_open_and_close_and_people_hear_of_it_once():
    told = tripped("inference")
    assert told(notice(breaker(breaker(Log().node(), "open"), "")).writes, RACKS) == []
    assert len(told(Log().node().writes, RACKS)) == 2
    assert len(told(notice(breaker(Log().node(), "open")).writes, RACKS)) == 1
    twice = notice(notice(breaker(breaker(Log().node(), "open"), "reopening")))
    assert len(told(twice.writes, RACKS)) == 1


def test_what_others_put_on_a_node_has_to_be_there_at_the_end():
    taint = [{"key": "example.org/team", "effect": "NoSchedule"}]
    log = Log().node().change(user="person:ada", taints=taint, unschedulable=True)
    assert untouched("n1")(log.writes, RACKS) == []
    assert untouched("n1")(log.change(taints=[]).writes, RACKS) != []


def test_a_new_node_has_to_be_proven_before_its_pod_comes_and_a_swept_one_to_be_found_sick():
    new = Log().node().unproven()
    assert len(proven("n1")(new.writes, RACKS)) == 2
    assert proven("n1")(new.unproven(None).pod("w1").writes, RACKS) == []
    assert proven("n1", joined=False)(Log().node().writes, RACKS) != []
    looked = Log().node().unproven("sweep")
    assert len(swept("n1")(looked.writes, RACKS)) == 1
    assert swept("n1")(looked.unproven("found").writes, RACKS) == []


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50), (40, 12)])
@pytest.mark.parametrize("troubled", [0, 3, 32])
def test_the_picture_fits_its_terminal_whatever_happens(width, height, troubled):
    log = Log()
    for number in range(1, 33):
        labels = {"topology.kubernetes.io/rack": f"rack-{number % 4}", "gpumend.io/pool": "p"}
        log.node(f"node-{number}", **labels)
    for number in range(1, troubled + 1):
        log.condition(name=f"node-{number}").hold(name=f"node-{number}", incident=str(number))
    console = Console(width=width, height=height, force_terminal=True, record=True)
    screen = Screen(console)
    screen.close()
    screen.show(log.nodes)
    for number in range(100):
        screen.say("node-1", f"sentence {number} " + "x" * 300)
    with console.capture() as captured:
        console.print(screen.render())
    lines = captured.get().splitlines()
    assert len(lines) <= height
    assert "sentence 99" in lines[-1]


def test_a_node_is_shown_by_the_gravest_that_is_true_of_it():
    log = Log().node("n1").node("n2").node("n3").condition().condition(name="n2").hold(name="n2")
    assert [state_of(log.nodes[each]) for each in ("n1", "n2", "n3")] == ["sick", "held", "well"]
    assert state_of(log.not_ready("n2").nodes["n2"]) == "not ready"
    assert state_of(log.unproven(name="n3").nodes["n3"]) == "unproven"
