"""The all-reduce of a node and of a pair: what is read, what it means, and what nobody can tell."""

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from itertools import combinations
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.pairwise import Course, Pair
from policies.pairwise import judge as judge_pairs
from probes import checks
from probes.checks import all_reduce
from probes.checks.subject import Subject
from probes.child import Ended
from probes.compute import reduce
from probes.compute.group import TcpGroup
from probes.compute.nccl_tests import Reduced, read
from probes.compute.numpy_backend import NumpyDevice
from probes.compute.rank import RankPlan, add_up, plan_of
from probes.machine import Machine
from probes.parts import Naming
from simulator.hardware.machine import Machine as Simulated
from simulator.hardware.nature import NATURES
from tests.compute.broken import complaints

H100 = "NVIDIA H100 80GB HBM3"
HEAD = """\
# nThread 1 nGpus 2 minBytes 4294967296 maxBytes 4294967296 step: 1048576(bytes) warmup iters: 5
#
# Using devices
#  Rank  0 Group  0 Pid  12345 on     node-1 device  0 [0x53] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  12345 on     node-1 device  1 [0000:64:00] NVIDIA H100 80GB HBM3
#
"""
NEW = """\
#                                                              out-of-place                in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong  time  algbw
    1048576        262144     float     sum      -1    31.09   33.73   59.03      0    31.51   \
33.28   58.24      0
 4294967296    1073741824     float     sum      -1   16120.  266.44  466.27      0   16101.  \
266.75  466.81      {wrong}
# Out of bounds values : {wrong} OK
# Avg bus bandwidth    : 466.54
"""
OLD = """\
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw
 4294967296    1073741824   float     sum   16120.  266.44  466.27  {wrong}   16101.  266.75  \
466.81  0e+00
# Out of bounds values : {bounds}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + NEW.format(wrong=0), Reduced(2, H100, 466.81e9, 0)),
        (HEAD + NEW.format(wrong=17), Reduced(2, H100, 466.81e9, 17)),
        (HEAD + OLD.format(wrong="0e+00", bounds="0 OK"), Reduced(2, H100, 466.81e9, 0)),
        (HEAD + OLD.format(wrong="5e-07", bounds="0 OK"), Reduced(2, H100, 466.81e9, 0)),
        (HEAD + OLD.format(wrong="2e+03", bounds="4 FAILED"), Reduced(2, H100, 466.81e9, 4)),
        (HEAD + OLD.format(wrong="2e+03", bounds=""), Reduced(2, H100, 466.81e9, None)),
        (HEAD + NEW.format(wrong="N/A"), Reduced(2, H100, 466.81e9, 0)),
        (HEAD.replace(H100, "NVIDIA H200", 1), Reduced(2, "", 0.0, None)),
        (HEAD, Reduced(2, H100, 0.0, None)),
        ("node-1: Test NCCL failure common.cu:958 'unhandled cuda error'", Reduced()),
        ("", Reduced()),
    ],
)
def test_the_tools_table_is_read_whatever_its_age(text, expected):
    assert read(text) == expected


@given(text=st.text(max_size=300), cut=st.integers(0, 900), junk=st.integers(0, 900))
@settings(max_examples=30, deadline=None)
def test_any_output_is_read(text, cut, junk):
    whole = HEAD + NEW.format(wrong=0)
    read(text)
    found = read(whole[:junk] + text + whole[junk:cut])
    assert found.bus >= 0.0


@given(
    said=st.lists(
        st.dictionaries(
            st.sampled_from(["rank", "met", "model", "bytes", "seconds", "wrong", "error", "end"]),
            st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.booleans(),
        ),
        max_size=6,
    )
)
@settings(max_examples=30, deadline=None)
def test_whatever_ranks_say_is_read(said):
    ranks = reduce.read("\n".join(json.dumps(each) for each in said))
    assert reduce.summed(ranks, 2).bus >= 0.0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rank": 1}'])
def test_what_is_no_plan_of_a_rank_is_refused(text):
    with pytest.raises(ValueError, match=r"plan|Expecting"):
        plan_of(text)


@pytest.mark.parametrize("change", [{"rank": 2}, {"rank": -1}, {"words": 0}, {"times": 0}])
def test_a_plan_whose_numbers_do_not_fit_is_refused(change):
    plan = {"rank": 0, "world": 2, "host": "h", "port": 1, "seconds": 1.0, **change}
    with pytest.raises(ValueError, match="do not fit"):
        plan_of(json.dumps(plan))


class Spoiling(NumpyDevice):
    """A node that brings one wrong bit."""

    def count(self, start, stop):
        numbers = NumpyDevice.count(self, start, stop)
        numbers[7:8] ^= 1 << 5
        return numbers


def pair_up(devices) -> list[dict[int, reduce.RankSaid]]:
    """Every two devices add up over TCP; what each pair said."""
    found = []
    for pair in combinations(devices, 2):
        port = reduce._free_port(reduce.LOCAL)
        lines: list[str] = []

        def one(rank, device, port=port, lines=lines):
            plan = RankPlan(rank, 2, reduce.LOCAL, port, 20.0, words=1 << 10, times=2)
            group = TcpGroup(rank, 2, (plan.host, port), time.monotonic() + 20.0)
            said = [{"rank": rank, "met": 2}, *add_up(plan, device, group)]
            lines.extend(json.dumps(each) for each in [*said, {"rank": rank, "end": True}])
            group.close()

        threads = [threading.Thread(target=one, args=each) for each in enumerate(pair)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        found.append(reduce.read("\n".join(lines)))
    return found


@pytest.mark.parametrize("sick", [None, 0, 2])
def test_pairs_of_ranks_over_tcp_find_the_node_that_brings_a_wrong_bit(sick):
    names = ["n0", "n1", "n2", "n3"]
    devices = [Spoiling() if index == sick else NumpyDevice() for index in range(4)]
    pairs = []
    for (one, other), said in zip(combinations(names, 2), pair_up(devices), strict=True):
        wrong = reduce.summed(said, 2).wrong
        assert wrong is not None
        pairs.append(Pair(one, other, Course.FAILED if wrong else Course.WELL))
    judgement = judge_pairs(names, pairs)
    assert judgement.odd == (() if sick is None else (names[sick],))


def test_a_rank_that_stays_away_is_an_end_in_time_and_no_hang():
    with pytest.raises(TimeoutError):
        TcpGroup(1, 2, (reduce.LOCAL, reduce._free_port(reduce.LOCAL)), time.monotonic() + 0.2)


def test_all_ranks_of_a_node_meet_and_add_up_in_processes_of_their_own(capfd):
    plan = RankPlan(0, 2, reduce.LOCAL, 0, 60.0, "a,b", words=1 << 10, times=3, backend="numpy")
    assert reduce.main([plan.text()]) == 0
    said = reduce.read(capfd.readouterr().out)
    reduced = reduce.summed(said, 2)
    assert (reduced.ranks, reduced.model, reduced.wrong) == (2, "numpy", 0)
    assert reduced.bus > 0


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exec sleep 60", reduce.OVER),
        ("trap 'sleep 0.6; exit 1' TERM; echo; sleep 60 & wait", reduce.OVER),
        ("trap '' TERM; echo; exec sleep 60", reduce.STUCK),
    ],
)
def test_a_rank_that_does_not_end_is_ended_and_one_that_cannot_be_is_left(
    monkeypatch, script, status
):
    started = []
    if status == reduce.STUCK:
        monkeypatch.setattr(reduce, "GRACE", 0.3)

    class Rank(subprocess.Popen[bytes]):
        def __init__(self, command):
            super().__init__(command, stdout=subprocess.PIPE, start_new_session=True)
            started.append(self)
            if "echo" in script:
                assert self.stdout
                self.stdout.readline()

    monkeypatch.setattr(reduce, "_command", lambda _: ["/bin/sh", "-c", script])
    monkeypatch.setattr(subprocess, "Popen", Rank)
    try:
        seconds = 10.0 if script.startswith("exit") else 0.1
        plan = RankPlan(0, 1, reduce.LOCAL, 0, seconds, "a", backend="numpy")
        assert reduce.main([plan.text()]) == status
    finally:
        for each in started:
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.communicate()


@pytest.fixture
def simulated(tmp_path, monkeypatch):
    monkeypatch.delenv(all_reduce.CONFIGURED, raising=False)
    monkeypatch.setattr(all_reduce, "MOST_SECONDS", 60.0)
    return Simulated.create(tmp_path / "m", "node-1", 8)


@pytest.fixture
def subject(simulated, tmp_path):
    found = Subject(Machine(simulated.root, tmp_path / "state"), Naming({}, simulated.root))
    found.name_gpus()
    return found


def look(subject):
    return complaints(checks.run(["all-reduce"], subject))


def test_a_simulated_node_is_well_slow_by_one_gpu_and_well_again(simulated, subject):
    assert look(subject) == set()
    simulated.strike(3, NATURES["slow"])
    assert look(subject) == {("host", "slow", "all-reduce:rate")}
    simulated.boot()
    assert look(subject) == set()
    simulated.hold("pod", (2,))
    assert look(subject) == {("gpu:2", "unknown", "all-reduce:in-use")}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (f"cat <<X\n{HEAD}X\nexec sleep 60", ("host", "fabric-not-ready", "all-reduce:hung")),
        ("exec sleep 60", ("host", "unknown", "all-reduce:untold")),
        (f"exit {reduce.STUCK}", ("host", "driver-hung", "child:hung")),
        ("echo Test NCCL failure; exit 3", ("host", "unknown", "all-reduce:untold")),
        (
            f"cat <<X\n{HEAD}{NEW.format(wrong=3)}X",
            ("host", "wrong-results", "all-reduce:wrong"),
        ),
        (f"cat <<X\n{HEAD}{NEW.format(wrong=0)}X", ("host", "unknown", "all-reduce:untold")),
    ],
)
def test_each_answer_of_the_tool_has_its_meaning(simulated, subject, monkeypatch, script, expected):
    monkeypatch.setattr(all_reduce, "MOST_SECONDS", 1.0)
    monkeypatch.setattr(all_reduce, "LEAST_SECONDS", 0.0)
    tool = simulated.root / "usr/bin/all_reduce_perf"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    assert look(subject) == {expected}


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (None, ("fabric-not-ready", "all-reduce:hung")),
        (400.0, ("fabric-not-ready", "all-reduce:hung")),
        (130.0, ("unknown", "all-reduce:no-time")),
    ],
)
def test_only_a_run_that_was_given_all_its_time_can_be_a_hang(subject, monkeypatch, left, expected):
    monkeypatch.setattr(all_reduce, "MOST_SECONDS", 120.0)
    ended = Ended(-signal.SIGTERM, HEAD, hung=True)
    monkeypatch.setattr(Subject, "use", lambda *_: (ended, False))
    subject.until = None if left is None else time.monotonic() + left
    assert look(subject) == {("host", *expected)}


@pytest.mark.parametrize("own", [False, True])
def test_the_time_to_end_in_order_is_taken_out_of_what_is_left(
    simulated, subject, monkeypatch, own
):
    asked = []

    def use(_, name, command, environment, limit, grace=0.5):
        del name, environment
        asked.append((command, limit, grace))
        return Ended(-signal.SIGTERM, hung=True), False

    monkeypatch.setattr(Subject, "use", use)
    if own:
        (simulated.root / "usr/bin/all_reduce_perf").unlink()
    monkeypatch.setattr(all_reduce, "MOST_SECONDS", 120.0)
    subject.until = time.monotonic() + 110.0
    assert look(subject) == {("host", "unknown", "all-reduce:no-time")}
    ((command, limit, grace),) = asked
    working = plan_of(command[-1]).seconds if own else limit
    assert all_reduce.LEAST_SECONDS <= working <= limit + grace - reduce.GRACE
    assert limit + grace < 110.0
    subject.until = time.monotonic() + reduce.GRACE + 30.0
    assert look(subject) == {("host", "unknown", "all-reduce:no-time")}
    assert len(asked) == 1


def test_the_time_of_an_addition_begins_when_the_last_rank_has_come(monkeypatch):
    clock = SimpleNamespace(now=0.0, late=50.0)

    class Others:
        """A group whose last rank comes 50 s after this one, each time."""

        def add_up(self, array):
            clock.now += clock.late + (1.0 if len(array) > 1 else 0.0)
            clock.late = 50.0 if len(array) > 1 else 0.0

        def close(self):
            pass

    monkeypatch.setattr("probes.compute.rank.time", SimpleNamespace(monotonic=lambda: clock.now))
    plan = RankPlan(0, 2, reduce.LOCAL, 0, 20.0, words=1 << 10, times=3)
    told = [each["seconds"] for each in add_up(plan, NumpyDevice(), Others())]
    assert told == [1.0, 1.0, 1.0]


def test_without_the_tool_and_without_torch_it_is_unknown_and_says_what_is_missing(
    tmp_path, monkeypatch
):
    monkeypatch.delenv(all_reduce.CONFIGURED, raising=False)
    simulated = Simulated.create(tmp_path / "two", "node-1", 2)
    subject = Subject(Machine(simulated.root, tmp_path / "state"), Naming({}, simulated.root))
    (simulated.root / "usr/bin/all_reduce_perf").unlink()
    (finding,) = checks.run(["all-reduce"], subject)
    assert finding.code in {"all-reduce:no-tool", "all-reduce:untold"}
    assert "torch" in finding.evidence


def test_one_gpu_has_nobody_to_add_up_with(tmp_path):
    simulated = Simulated.create(tmp_path / "one", "node-1", 1)
    subject = Subject(Machine(simulated.root, tmp_path / "state"), Naming({}, simulated.root))
    assert look(subject) == set()
