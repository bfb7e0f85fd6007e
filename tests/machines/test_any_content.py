"""Whatever files hold, no check raises, and nothing that is absent or cut short reads as well."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.finding import Verdict
from probes import expectations, services, topology
from probes.adapters import FILES, parse_lanes
from probes.agent import memory
from probes.agent.memory import Doubt
from probes.checks import adapters, driver, host
from probes.checks.host import mounted
from probes.files import Glimpse
from probes.kernel_log.framing import parse_record
from probes.kernel_log.read import Reader
from probes.kmsg import Cursor, follow
from probes.machine import Machine
from probes.nvml.view import View
from probes.parts import gpus_of
from probes.records import read_records
from probes.stuck import threads_in_driver
from tests.machines.tree import KINDS, Tree, write

ANY = settings(max_examples=25)
BYTES = st.binary(max_size=24) | st.sampled_from(
    [b"", b"4: ACTIVE", b"0", b"-1", b"9" * 30, b"\xb2", b"400 Gb/sec (4X NDR)", b"N/A", b"63"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def infiniband(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("ib"), replace(KINDS["infiniband"], adapters=2))


@pytest.fixture(scope="module")
def contents(infiniband):
    root = infiniband.root
    return {path: path.read_bytes() for each in FILES for path in root.glob(each)}


@ANY
@given(data=st.data())
def test_no_file_of_an_adapter_raises_or_makes_it_well_that_says_nothing(
    infiniband, contents, data
):
    paths = sorted(each for each in contents if "counters" not in str(each))
    chosen = data.draw(st.sampled_from(paths))
    said = data.draw(BYTES)
    subject = infiniband.subject
    seen = Glimpse({**contents, chosen: said}, {})
    subject.begin(0.0)
    found = _adapters(subject, seen)
    name = chosen.relative_to(infiniband.root / "sys/class/infiniband").parts[0]
    mine = [each for each in found if each.part == f"nic:{name}"]
    if chosen.name in ("state", "phys_state", "rate"):
        whole = said.strip().startswith(contents[chosen].strip()[:2])
        assert whole or all(each.verdict is not Verdict.OK for each in mine)


def _adapters(subject, seen):
    read = type(subject).read
    type(subject).read = lambda *_, **__: seen
    try:
        return adapters.check(subject)
    finally:
        type(subject).read = read


@given(st.text(max_size=8))
def test_lanes_are_a_number_of_lanes_or_none(text):
    assert parse_lanes(text) in (0, 1, 2, 4, 8, 12, 16, 32)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("p5"), KINDS["p5"])


FILES_OF_THE_HOST = (
    *("proc/1/mounts", "proc/driver/nvidia/version", "sys/module/nvidia/version"),
    *("proc/77/comm", "proc/77/task/77/stat", "proc/77/task/77/wchan"),
)


@ANY
@given(st.sampled_from(FILES_OF_THE_HOST), BYTES | st.binary(max_size=80))
def test_no_file_of_the_host_raises(tree, name, said):
    path = tree.root / name
    write(path, "")
    path.write_bytes(said)
    tree.subject._view = View(count=8, whole=True)
    for check in (host.check, driver.check):
        assert check(tree.subject)
    threads_in_driver(tree.root)
    services.runs(tree.root, "nv-fabricmanager")
    mounted(said.decode("utf-8", "replace").splitlines())


@ANY
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"Device Minor: 3", b"Bus Location: x"])))
def test_no_list_of_the_driver_raises_or_names_what_it_does_not_say(texts):
    for address, gpu in gpus_of(texts, b"key").items():
        assert address and gpu.index >= 0  # noqa: PT018


@ANY
@given(
    st.lists(st.binary(max_size=60) | st.just(b"4,7,8,-;NVRM: Xid (PCI:0000:53:00): "), max_size=5)
)
def test_no_record_of_the_log_raises(raw):
    reader = Reader()
    for each in follow(raw, Cursor("boot"), True):
        reader.read(each.line)
    for each in raw:
        try:
            parse_record(each)
        except ValueError:
            continue


SOUND = memory.Memory(Cursor("boot", sequence=9))


@ANY
@given(data=st.data())
def test_a_state_that_is_not_ours_is_a_doubt_and_never_health(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "state"
    memory.save(SOUND, folder, "n1")
    whole = (folder / memory.FILE).read_text()
    fields = json.loads(whole)
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(JSON)
    text = data.draw(
        st.just(json.dumps(fields)) | st.integers(0, len(whole) - 1).map(whole.__getitem__)
    )
    (folder / memory.FILE).write_text(text)
    loaded = memory.load(folder, "boot", "n1")
    if len(text) < 2:
        assert loaded.doubt is Doubt.BROKEN
    (folder / memory.FILE).write_text(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert memory.load(folder, "boot", "n1").doubt is Doubt.BROKEN


@ANY
@given(data=st.data())
def test_no_record_of_a_step_raises_and_a_broken_one_proves_nothing(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "steps"
    (folder / "records").mkdir(parents=True, exist_ok=True)
    fields = {"kind": "reset", "boot_id": "boot", "parts": ["gpu:1"], "through": 7,
              "at": "2026-11-29T12:00:00Z"}  # fmt: skip
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = data.draw(JSON)
    (folder / "records/x.json").write_text(json.dumps(fields))
    for record in read_records(folder, "boot"):
        assert record.parts or name == "parts"
    (folder / "records/x.json").write_text(json.dumps(fields)[:-1])
    assert read_records(folder, "boot") == ()


@ANY
@given(text=st.text("0123456789 ²-", max_size=12) | st.just("9" * 5_000))
def test_no_remembered_count_raises(tmp_path_factory, text):
    tree = tmp_path_factory.getbasetemp()
    here = Machine(tree, tree / "counts")
    write(expectations.own_file(here, expectations.GPUS), text)
    assert 0 <= expectations.best_seen(here, expectations.GPUS) <= expectations.MOST
    least = expectations.expect(here, expectations.GPUS, {expectations.GPUS: text}).least
    assert least != 0 or not text.strip("0 ")


@ANY
@given(text=st.text(max_size=20) | JSON.map(json.dumps))
def test_no_remembered_topology_raises_anything_else(tmp_path_factory, text):
    here = Machine(tmp_path_factory.getbasetemp(), tmp_path_factory.getbasetemp() / "topology")
    path = topology.place(here)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", "replace")
    try:
        topology.changes(topology.recall(here), {"0000:53:00": "x"})
    except (ValueError, OSError):
        return
