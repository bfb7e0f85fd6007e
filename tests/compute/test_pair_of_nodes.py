"""Two sides of a pair: they meet, or say why not, and what each saw is told and never a blame."""

import json
import socket
import threading
from dataclasses import replace

import pytest

from fleet.check import PAIRS
from fleet.finding import Verdict
from fleet.pair import PairPlace, format_place, parse_place
from probes.checks.pairs import Side, judge
from probes.child import Ended
from probes.compute import pair, reduce
from probes.compute.baselines import Baseline
from probes.compute.pair import Heard, PairPlan, heard
from probes.compute.reduce import RankSaid
from simulator.loopback import free_port

HERE = "127.0.0.1"


def plan(side: int, port: int, **changes) -> PairPlan:
    plain = PairPlan(side, HERE, port, "pair-1", 20.0, 60.0, f"gpu-{side}", words=1 << 10, times=3)
    return replace(plain, backend="numpy", **changes)


def both(*sides: PairPlan) -> list[int]:
    """Each side in a thread; their exit statuses."""
    ended = [-1] * len(sides)

    def one(number: int) -> None:
        ended[number] = pair.main([sides[number].text()])

    threads = [threading.Thread(target=one, args=(each,)) for each in range(len(sides))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return ended


def test_two_nodes_meet_and_their_ranks_add_up_right(capfd):
    port = free_port()
    assert both(plan(0, port), plan(1, port)) == [0, 0]
    output = capfd.readouterr().out
    said = reduce.read(output)
    assert heard(output).greeted
    assert sorted(said) == [0, 1]
    for rank in said:
        here = reduce.summed({rank: said[rank]}, 2, 1)
        assert (here.model, here.wrong) == ("numpy", 0)
        assert here.bus > 0


def test_a_stranger_that_calls_first_is_sent_away(capfd):
    port = free_port()

    def call(*words: bytes) -> None:
        for each in words:
            while True:
                try:
                    with socket.create_connection((HERE, port), 10) as stranger:
                        stranger.sendall(each)
                        assert stranger.recv(100) == b""
                except ConnectionRefusedError:
                    continue
                break
        both(plan(1, port, gpu="a,b"))

    strangers = threading.Thread(
        target=call, args=(b"GET / HTTP/1.1\n", b'{"meeting": "other", "gpus": 8}\n', b"[]\n")
    )
    strangers.start()
    assert both(plan(0, port)) == [1]
    strangers.join()
    said = [json.loads(each) for each in capfd.readouterr().out.splitlines()]
    assert {"unlike": "1 GPUs here, 2 there"} in said
    assert {"unlike": "2 GPUs here, 1 there"} in said


@pytest.mark.parametrize("side", [0, 1])
def test_who_waits_in_vain_says_that_nobody_came(side, capfd):
    assert both(plan(side, free_port(), meet=0.1)) == [1]
    assert heard(capfd.readouterr().out).alone


def test_where_another_has_the_port_nobody_is_accused(capfd):
    with socket.create_server((HERE, 0)) as other:
        assert both(plan(0, other.getsockname()[1])) == [1]
    assert "in use" in heard(capfd.readouterr().out).port


@pytest.mark.parametrize("text", ["", "[]", "{", '{"greeted": "x"}\nnoise', '{"alone": 3}', "7"])
def test_whatever_a_side_says_of_its_meeting_is_read(text):
    assert heard(text) == Heard()


RANK = RankSaid(True, "H100", 1 << 31, (0.09, 0.05, 0.05), 0, "", "", True)
WELL = Side(Ended(0), False, Heard(greeted=True), {0: RANK, 1: replace(RANK)}, 2)
MUTE = {0: replace(RANK, times=(), ended=False), 1: replace(RANK, times=(), ended=False)}
GAVE_UP = {**MUTE, 1: replace(MUTE[1], error="RuntimeError: NCCL error")}
LEAST = {("H100", "pair-4"): Baseline(100e9, "ours")}


@pytest.mark.parametrize(
    ("side", "code"),
    [
        (WELL, ""),
        (replace(WELL, ended=Ended(1), heard=Heard(alone="nobody came"), said={}), "alone"),
        (replace(WELL, ended=Ended(1), heard=Heard(), said={}), "alone"),
        (replace(WELL, ended=Ended(1), heard=Heard(port="in use"), said={}), "port"),
        (replace(WELL, ended=Ended(1), heard=Heard(unlike="8, 4"), said={}), "unlike"),
        (replace(WELL, ended=Ended(reduce.OVER), said=MUTE), "hung"),
        (replace(WELL, ended=Ended(-15, hung=True), said=MUTE), "hung"),
        (replace(WELL, ended=Ended(reduce.OVER), said={0: MUTE[0]}), "untold"),
        (replace(WELL, ended=Ended(reduce.OVER), said={}), "untold"),
        (replace(WELL, ended=Ended(1), said=GAVE_UP), "broken"),
        (replace(WELL, ended=Ended(1), said={0: RankSaid(missing="no torch")}), "no-backend"),
        (replace(WELL, said={0: RANK, 1: replace(RANK, wrong=4)}), "wrong"),
        (replace(WELL, ended=Ended(reduce.STUCK)), "stuck"),
        (replace(WELL, ended=Ended(None, hung=True), left=True), "stuck"),
    ],
)
def test_what_a_side_saw_is_well_or_a_code_of_the_pair_and_no_fault_of_its_node(side, code):
    finding = judge(side, 60.0, {})
    assert finding.check == PAIRS
    assert finding.verdict is (Verdict.UNKNOWN if code else Verdict.OK)
    assert finding.code == (code and f"pairs:{code}")
    assert (finding.value > 0) is (not code)


def test_a_pair_below_the_sites_own_baseline_is_slow_and_says_its_pace():
    finding = judge(WELL, 60.0, LEAST)
    assert (finding.verdict, finding.code) == (Verdict.UNKNOWN, "pairs:slow")
    assert finding.value == pytest.approx(2 * 3 / 4 * (1 << 31) / 0.05)


PLACE = PairPlace(1, "10.0.0.7", 27_900, "prove-pair-1-1", 120.0)


def test_a_place_is_read_back_and_nothing_else_is_taken_for_one():
    assert parse_place(format_place(PLACE)) == PLACE
    for wrong in ("{}", "[]", "x", "7"):
        with pytest.raises(ValueError, match=r"place|Expecting"):
            parse_place(wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"side": 2},
        {"port": 0},
        {"port": 65_535},
        {"host": "a; b"},
        {"meeting": "A b"},
        {"seconds": 0},
    ],
)
def test_a_place_that_does_not_fit_is_refused(change):
    with pytest.raises(ValueError, match=r"side|address|time"):
        replace(PLACE, **change)
