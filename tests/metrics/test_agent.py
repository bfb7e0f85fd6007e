"""What a node agent measures, as a scrape reads it; and that nobody who scrapes can hold it up."""

import contextlib
import socket
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fleet.agent_figure import AGENT_FIGURES, CHECKS, FAULTS
from fleet.fault import Advice, Fault, FaultName
from fleet.part import HOST, Part
from probes.agent import exposition, figures
from probes.agent.counting import count_check, count_faults, count_log, count_round
from probes.agent.exposition import Exposition
from probes.agent.figures import Figures
from probes.agent.rounds import Timed
from probes.checks.subject import fault, ok, unknown
from probes.child import Tool
from tests.agent.fake_machine import FakeMachine, xid
from tests.agent.process import end, start_agent
from tests.agent.server import ApiStand

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def read(text):
    """As Prometheus itself reads it: any mistake of the format raises."""
    return {
        (each.name, *sorted(each.labels.items())): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def test_counters_grow_and_levels_are_replaced_as_a_whole():
    measured = Figures()
    measured.count(CHECKS, "memory", "ok")
    measured.count(CHECKS, "memory", "ok", by=2)
    measured.level(FAULTS, {("gpu:1", "thermal"): 1, ("host", "driver-hung"): 1})
    measured.level(FAULTS, {("host", "driver-hung"): 1})
    found = read(measured.text())
    labels = (("check", "memory"), ("verdict", "ok"))
    assert found["gpumend_agent_checks_total", *labels] == 3
    assert [key for key in found if key[0] == FAULTS.exposed] == [
        (FAULTS.exposed, ("fault", "driver-hung"), ("part", "host"))
    ]
    assert found["process_resident_memory_bytes",] > 1_000_000


def test_a_label_with_every_awkward_sign_is_read_back_as_it_was():
    measured = Figures()
    awkward = 'a\\b"c\nd{},='
    measured.count(CHECKS, awkward, "ok")
    key = ("gpumend_agent_checks_total", ("check", awkward), ("verdict", "ok"))
    assert read(measured.text())[key] == 1


def test_series_are_bounded_and_what_is_left_out_is_counted(monkeypatch):
    monkeypatch.setattr(figures, "SERIES_LIMIT", 5)
    measured = Figures()
    for number in range(8):
        measured.count(CHECKS, str(number), "ok")
    found = read(measured.text())
    assert len([key for key in found if key[0] == CHECKS.exposed]) == 5
    assert found["gpumend_agent_series_refused_total",] == 3
    measured.level(CHECKS, {})
    measured.count(CHECKS, "there is room again", "ok")
    assert len([key for key in read(measured.text()) if key[0] == CHECKS.exposed]) == 1


LOST = fault("pci", Part("gpu:1"), FaultName.GPU_LOST, "pci:gone", Advice.REBOOT)


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ((ok("pci", HOST), LOST, unknown("pci", HOST, "x")), "fault"),
        ((ok("pci", HOST), unknown("pci", HOST, "x")), "unknown"),
        ((ok("pci", HOST),), "ok"),
        ((), "none"),
    ],
)
def test_a_run_of_a_check_counts_by_its_worst_verdict(findings, verdict):
    measured = Figures()
    count_check(measured, Timed("pci", findings, 0.1))
    assert read(measured.text())[CHECKS.exposed, ("check", "pci"), ("verdict", verdict)] == 1


def test_a_round_shows_how_long_its_checks_took_and_which_tools_hang(tmp_path):
    tool = Tool("nvml")
    assert "gpumend_agent_round_age_seconds" not in Figures().text()
    hung = tool.run(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], 0.1)
    assert hung.hung
    measured = Figures()
    count_round(measured, [Timed("pci", (), 0.25)], {"nvml": tool, "idle": Tool("idle")})
    found = read(measured.text())
    assert found["gpumend_agent_check_seconds", ("check", "pci")] == 0.25
    assert found["gpumend_agent_children_hanging", ("tool", "nvml")] == 1
    assert found["gpumend_agent_children_abandoned_total", ("tool", "nvml")] == 1
    assert ("gpumend_agent_children_hanging", ("tool", "idle")) not in found
    assert 0 <= found["gpumend_agent_round_age_seconds",] < 60
    tool.run(["true"], 0.1)
    while tool.outstanding:
        tool.run(["true"], 0.1)


def test_what_stands_and_what_the_log_held_back_is_counted():
    measured = Figures()
    here = Fault(Part("gpu:3"), FaultName.THERMAL, "x", Advice.HOLD, 7, NOW, "7f3a9c01")
    count_faults(measured, [here])
    raw = [b"4,1,1,-;a", b"4,2,2,-;nvidia_handle: 35 callbacks suppressed"]
    count_log(measured, raw, {"lost": 1, "foreign": 0}, {"lost": 4, "foreign": 0})
    text = measured.text()
    found = read(text)
    assert found[FAULTS.exposed, ("fault", "thermal"), ("part", "gpu:3")] == 1
    for kind, count in (("read", 2), ("lost", 3), ("suppressed", 1)):
        assert found["gpumend_agent_log_records_total", ("kind", kind)] == count
    assert ("gpumend_agent_log_records_total", ("kind", "foreign")) not in found
    assert "7f3a9c01" not in text


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setattr(exposition, "SECONDS", 0.3)
    shown = Exposition(("127.0.0.1", 0), lambda: "x 1\n")
    thread = threading.Thread(target=shown.run)
    thread.start()
    assert shown.ready.wait(10)
    yield shown
    shown.stop()
    thread.join(10)
    assert not thread.is_alive()


def get(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_a_scrape_gets_the_figures_and_other_paths_get_none(served):
    assert get(served.port) == (200, "text/plain; version=0.0.4; charset=utf-8", "x 1\n")
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        get(served.port, "/")
    refused.value.close()


def test_whoever_sends_nothing_or_nonsense_holds_nobody_up(served):
    with contextlib.ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            for _ in range(3)
        ]
        silent[1].sendall(b"\xff\x00 not http at all")
        assert get(served.port)[0] == 200


def test_one_that_drips_byte_by_byte_is_cut_off(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as slow:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 10:
                slow.sendall(b"G")
                slow.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    if not slow.recv(1):
                        break
        assert time.monotonic() - began < 10
    assert get(served.port)[0] == 200


def test_an_address_that_is_taken_keeps_no_agent_from_its_work(tmp_path):
    fake, stand = FakeMachine(tmp_path / "m"), ApiStand()
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = f"127.0.0.1:{other.getsockname()[1]}"
        agent = start_agent(fake.root, stand.url, GPUMEND_METRICS_ADDRESS=where)
        try:
            fake.log(xid("0000:52:00", 95))
            stand.wait_until(lambda: stand.status("Memory") == ("False", "UncontainedMemory"))
        finally:
            assert end(agent) == 0
            stand.close()
    assert "metrics cannot be served" in (tmp_path / "agent.log").read_text()


def test_an_agent_on_a_node_tells_what_it_did_without_names_that_are_secret(tmp_path):
    fake, stand = FakeMachine(tmp_path / "m"), ApiStand()
    agent = start_agent(fake.root, stand.url, GPUMEND_METRICS_ADDRESS="127.0.0.1:0")
    try:
        fake.log(xid("0000:52:00", 95), *[xid("0000:53:00", 31)] * 3)
        stand.wait_until(lambda: stand.status("Memory") == ("False", "UncontainedMemory"))
        stand.wait_until(lambda: "agent-n1" in stand.leases)
        log = (tmp_path / "agent.log").read_text()
        port = int(log.partition("at=127.0.0.1:")[2].split()[0])
        text = get(port)[2]
    finally:
        assert end(agent) == 0
        stand.close()
    found = read(text)
    assert found[FAULTS.exposed, ("fault", "uncontained-memory"), ("part", "gpu:0")] == 1
    about = (("code", "xid:31"), ("fault", "application"))
    assert found["gpumend_agent_harmless_lines_total", *about] == 3
    assert found["gpumend_agent_condition_patches_total",] >= 1
    assert found["gpumend_agent_log_records_total", ("kind", "read")] == 5
    assert "GPU-" not in text


def test_no_figure_of_ours_has_a_name_of_the_exporter_of_dcgm():
    names = [each.exposed for each in AGENT_FIGURES]
    assert len(set(names)) == len(names)
    assert all(name.startswith("gpumend_agent_") for name in names)
    labels = {label for each in AGENT_FIGURES for label in each.labels}
    ours = {"part", "fault", "check", "verdict", "tool", "kind", "code"}
    assert labels == ours | {"namespace", "pod"}
