"""Network adapters on the sysfs of every machine type: sound, missing, slow, down, mute, back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.finding import Verdict
from probes import catalog, expectations
from probes.adapters import FILES, parse_rate, parse_state, read_adapters
from probes.checks import adapters
from probes.counters import parse_count
from tests.machines.tree import KINDS, Tree, write

CLOUD = [name for name, kind in KINDS.items() if kind.driver == "efa"]


@pytest.fixture(params=list(KINDS))
def tree(request, tmp_path):
    return Tree(tmp_path, KINDS[request.param])


@pytest.fixture
def p5(tmp_path):
    return Tree(tmp_path, KINDS["p5"])


@pytest.fixture
def infiniband(tmp_path):
    return Tree(tmp_path, KINDS["infiniband"])


def look(tree, minute=0):
    tree.subject.begin(minute * 60.0)
    return {
        (each.part, each.fault or each.verdict.value, each.code)
        for each in adapters.check(tree.subject)
        if each.verdict is not Verdict.OK
    }


def test_every_type_is_sound_with_all_its_adapters(tree):
    assert look(tree) == set()
    assert len(adapters.check(tree.subject)) == 1 + tree.kind.adapters


def test_the_catalogue_has_the_machines_of_these_trees():
    known = catalog.instance_types()
    for name in CLOUD:
        kind = KINDS[name]
        assert (known[kind.product].gpus, known[kind.product].adapters) == (
            kind.gpus,
            kind.adapters,
        )


def test_one_adapter_fewer_than_configured_is_missing_though_all_others_are_active(
    tree, monkeypatch
):
    monkeypatch.setenv(expectations.ADAPTERS, str(tree.kind.adapters))
    tree.lose_adapter(1)
    assert look(tree) == {("host", "nic-missing", "adapters:missing")}
    tree.add_adapter(1)
    assert look(tree) == set()


def test_a_configured_number_above_the_types_maximum_is_bounded_by_it(p5, monkeypatch):
    monkeypatch.setenv(expectations.ADAPTERS, "999")
    assert look(p5) == set()


def test_fewer_than_the_type_may_have_is_unknown_where_nobody_said_how_many(p5):
    p5.lose_adapter(4)
    assert look(p5) == {("host", "unknown", "adapters:expectation-unknown")}


def test_fewer_than_were_once_seen_here_is_missing(p5):
    expectations.remember(p5.subject.machine, expectations.ADAPTERS, 32)
    expectations.remember(p5.subject.machine, expectations.ADAPTERS, 12)
    p5.lose_adapter(4)
    assert look(p5) == {("host", "nic-missing", "adapters:missing")}


def test_what_another_machine_once_had_is_not_expected_of_this_one(p5):
    uuid = p5.root / "sys/class/dmi/id/product_uuid"
    write(uuid, "one machine")
    expectations.remember(p5.subject.machine, expectations.ADAPTERS, 32)
    write(uuid, "another with the same image")
    assert expectations.expect(p5.subject.machine, expectations.ADAPTERS).least is None


def test_a_type_that_nobody_knows_is_not_expected_to_have_none(p5, monkeypatch):
    monkeypatch.setenv(expectations.TYPE, "p99.metal")
    assert expectations.expect(p5.subject.machine, expectations.ADAPTERS).most is None


def test_an_adapter_on_the_bus_that_no_driver_took_is_missing(tree, monkeypatch):
    monkeypatch.setenv(expectations.ADAPTERS, "1")
    tree.lose_driver(1)
    assert look(tree) == {("pci:0000:11:1b", "nic-missing", "adapters:no-driver")}


def test_virtual_functions_and_other_drivers_are_not_counted(infiniband):
    (infiniband.pci(0) / "physfn").mkdir()
    foreign = infiniband.root / "sys/bus/pci/drivers/irdma"
    foreign.mkdir()
    (infiniband.pci(1) / "driver").unlink()
    (infiniband.pci(1) / "driver").symlink_to(foreign)
    write(infiniband.pci(1) / "class", "0x020000")
    assert len(adapters.check(infiniband.subject)) == 1 + 6


def test_an_ethernet_adapter_beside_infiniband_is_for_management_and_may_be_unplugged(infiniband):
    write(infiniband.port(7) / "link_layer", "Ethernet")
    write(infiniband.port(7) / "state", "1: DOWN")
    write(infiniband.port(7) / "phys_state", "3: Disabled")
    write(infiniband.pci(7) / "class", "0x020000")
    assert look(infiniband) == set()
    assert len(adapters.check(infiniband.subject)) == 1 + 7


def test_where_all_speak_ethernet_they_are_the_fabric(infiniband):
    for number in range(8):
        write(infiniband.port(number) / "link_layer", "Ethernet")
    write(infiniband.port(7) / "state", "1: DOWN")
    assert look(infiniband) == {("nic:mlx5_7", "nic-degraded", "adapters:down")}


@pytest.mark.parametrize(
    ("state", "physical"),
    [("1: DOWN", "3: Disabled"), ("2: INIT", "5: LinkUp"), ("4: ACTIVE", "2: Polling")],
)
def test_a_link_that_is_down_is_degraded_until_it_is_up(infiniband, state, physical):
    write(infiniband.port(3) / "state", state)
    write(infiniband.port(3) / "phys_state", physical)
    assert look(infiniband) == {("nic:mlx5_3", "nic-degraded", "adapters:down")}
    write(infiniband.port(3) / "state", "4: ACTIVE")
    write(infiniband.port(3) / "phys_state", "5: LinkUp")
    assert look(infiniband) == set()


def test_the_state_of_an_efa_adapter_is_no_evidence(p5):
    write(p5.port(3) / "state", "1: DOWN")
    assert look(p5) == set()


def test_a_port_slower_than_its_like_is_degraded(infiniband):
    write(infiniband.port(5) / "rate", "200 Gb/sec (4X HDR)")
    assert look(infiniband) == {("nic:mlx5_5", "nic-degraded", "adapters:slow")}


def test_an_adapter_with_fewer_lanes_than_its_like_is_degraded_until_it_has_them(infiniband):
    for number in range(8):
        write(infiniband.pci(number) / "max_link_width", "16")
        write(infiniband.pci(number) / "current_link_width", "16")
    assert look(infiniband) == set()
    write(infiniband.pci(5) / "current_link_width", "4")
    assert look(infiniband) == {("nic:mlx5_5", "nic-degraded", "adapters:width")}
    write(infiniband.pci(5) / "current_link_width", "16")
    assert look(infiniband) == set()


@pytest.mark.parametrize("said", ["", "63", "x16"])
def test_lanes_that_nobody_tells_and_slots_that_are_small_accuse_nobody(infiniband, said):
    for number in range(8):
        write(infiniband.pci(number) / "max_link_width", "16")
        write(infiniband.pci(number) / "current_link_width", "8")
    write(infiniband.pci(5) / "current_link_width", said)
    assert look(infiniband) == set()


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("rate", "", "adapters:no-rate"),
        ("rate", "fast", "adapters:no-rate"),
        ("state", "", "adapters:no-state"),
        ("phys_state", "Up", "adapters:no-state"),
    ],
)
def test_what_cannot_be_read_is_unknown_and_not_well(infiniband, file, text, code):
    write(infiniband.port(2) / file, text)
    assert look(infiniband) == {("nic:mlx5_2", "unknown", code)}


@pytest.mark.parametrize(
    ("counter", "little", "much", "code"),
    [
        ("symbol_error", 2, 3, "adapters:symbol-error"),
        ("port_rcv_errors", 600, 601, "adapters:port-rcv-errors"),
        ("link_error_recovery", 5, 6, "adapters:link-error-recovery"),
    ],
)
def test_errors_accuse_by_what_they_rose_in_a_minute(infiniband, counter, little, much, code):
    path = infiniband.port(0) / "counters" / counter
    for minute, count in enumerate((4_000, 4_000 + little, 4_000 + little + much)):
        write(path, str(count))
        found = look(infiniband, minute)
        assert found == ({("nic:mlx5_0", "nic-degraded", code)} if minute == 2 else set())


def test_an_efa_command_without_an_answer_is_degraded(p5):
    path = p5.root / "sys/class/infiniband/rdmap20s27/hw_counters/no_completion_cmds"
    look(p5, 0)
    write(path, "1")
    assert look(p5, 1) == {("nic:rdmap20s27", "nic-degraded", "efa:no-completion")}


def test_without_a_bus_to_read_nothing_is_said_to_be_well(p5):
    (p5.root / "sys/bus/pci/devices").rename(p5.root / "gone")
    assert look(p5) == {("host", "unknown", "adapters:unreadable")}


@given(st.text(max_size=40))
def test_no_text_in_a_file_raises(text):
    parse_rate(text)
    assert parse_state(text) >= -1
    count = parse_count(text)
    assert count is None or count >= 0


def flap(tree, times):
    path = tree.port(0) / "counters/link_downed"
    write(path, str(int(path.read_text()) + times))


FLAPS = ("nic:mlx5_0", "nic-degraded", "adapters:flaps")


def test_a_link_that_flaps_slowly_is_degraded_until_an_hour_was_free_of_it(infiniband):
    found = []
    for minute in (0, 20, 40, 58):
        flap(infiniband, minute > 0)
        found.append(look(infiniband, minute))
    assert found == [set(), set(), set(), {FLAPS}]
    assert look(infiniband, 60 + 57) == {FLAPS}
    assert look(infiniband, 60 + 58) == set()


def went_down(tree, **files):
    """How often adapter 0 did, as one that speaks Ethernet with these files of its interface."""
    for number in range(8):
        write(tree.port(number) / "link_layer", "Ethernet")
    for name, text in files.items():
        write(tree.pci(0) / "net/eth0" / name, str(text))
    read = [each for one in FILES for each in tree.root.glob(one)]
    contents = {each: each.read_bytes() for each in read if each.is_file()}
    return read_adapters(tree.root, contents)[0].went_down


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"carrier_down_count": 4, "carrier_changes": 99}, {"carrier": 4}),
        ({"carrier_changes": 8}, {"carrier": 4}),
        ({"carrier_changes": 9}, {"carrier": 4}),
        ({"carrier_changes": 9, "phys_port_name": "p0"}, {"carrier": 4}),
        ({"carrier_changes": 9, "phys_port_name": "pf0vf3"}, {"port 1": 0}),
        ({"carrier_down_count": "?"}, {"port 1": 0}),
        ({}, {"port 1": 0}),
    ],
)
def test_an_ethernet_link_went_down_as_often_as_its_own_carrier_did(infiniband, files, expected):
    assert went_down(infiniband, **files) == expected


def test_what_links_do_at_a_boot_is_no_flap_and_flaps_after_it_are(infiniband):
    write(infiniband.root / "proc/uptime", "30.0 1.0")
    look(infiniband, 1)
    flap(infiniband, 9)
    write(infiniband.root / "proc/uptime", "90.0 1.0")
    assert look(infiniband, 2) == set()
    write(infiniband.root / "proc/uptime", "150.0 1.0")
    assert look(infiniband, 3) == set()
    flap(infiniband, 3)
    write(infiniband.root / "proc/uptime", "210.0 1.0")
    assert look(infiniband, 4) == {FLAPS}
