"""Every passive check by one table: sound, faulty, its tool mute, its value absent, and well again.

A check that has no row here fails the first test. A mute tool or an absent value is never health.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from fleet.check import Check
from fleet.finding import Verdict
from probes import checks, expectations
from probes.checks import settings
from probes.checks.nvlink import PER_MINUTE
from probes.checks.nvml_memory import FLAGS
from probes.checks.subject import Subject
from probes.child import Ended
from probes.files import Glimpse
from probes.nvml.view import GpuView, Mute, Value, View
from probes.parts import Gpu, Naming
from tests.machines.tree import KINDS, Tree, write

ABSENT, BROKEN = Mute(3), Mute(999)
NVML: dict[str, Value] = {
    **dict.fromkeys((*FLAGS, "ecc_corrected", "recovery_action", "pcie_replays", "pcie_fatal"), 0),
    **dict.fromkeys(("hw_thermal_ns", "power_brake_ns"), 0),
    **dict.fromkeys(("retired_sbe", "retired_dbe", "retired_pending"), ABSENT),
    "margin": 38,
    "power": 71_000,
    "width": 16,
    "width_limit": 16,
    "nvlink_count": 2,
    "fabric": (3, 0, 0, 1),
    "ecc_mode": (1, 1),
    "mig_mode": (0, 0),
    "repair_pending": (0, 0),
}
LINK: dict[str, Value] = {**dict.fromkeys(PER_MINUTE, 0), "state": 1, "speed": 26_562}
REPORT = '{"body": {"Overall Health": {"value": "%s"}%s}}'
FAILURE = (
    ', "GPU": {"children": {"1": {"value": "Failure", "children": {"Errors":'
    ' {"children": {"Memory system": {"value": "Failure"}}}}}}}'
)


@dataclass
class World:
    """An InfiniBand machine of two GPUs, what NVML and dcgmi say, and whether readers hang."""

    tree: Tree
    view: View
    dcgm: Ended = field(default_factory=lambda: Ended(0, REPORT % ("Healthy", "")))
    readers_hang: bool = False

    def gpu(self, **values: Value) -> None:
        """Other values of GPU 1; `link_` before a name is of its link 1."""
        one = self.view.gpus[1]
        of_link = {k.removeprefix("link_"): v for k, v in values.items() if k.startswith("link_")}
        mine = {name: value for name, value in values.items() if not name.startswith("link_")}
        links = (one.links[0], {**one.links[1], **of_link})
        changed = replace(one, values={**one.values, **mine}, links=links)
        self.view = replace(self.view, gpus=(self.view.gpus[0], changed))


def mute(world: World) -> None:
    world.view = View(hung=True)


def lacking(*names: str) -> Callable[[World], None]:
    return lambda world: world.gpu(**dict.fromkeys(names, ABSENT))


def with_(**values: Value) -> Callable[[World], None]:
    return lambda world: world.gpu(**values)


def hang(world: World) -> None:
    world.readers_hang = True


def file(name: str, text: str) -> Callable[[World], None]:
    return lambda world: write(world.tree.root / name, text)


def gone(name: str) -> Callable[[World], None]:
    return lambda world: (world.tree.root / name).unlink()


def unloaded(world: World) -> None:
    (world.tree.root / "proc/driver/nvidia").rename(world.tree.root / "gone")


def silent(world: World) -> None:
    world.view = View(count=2)


def dcgm(text: str, status: int | None = 0, hung: bool = False) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.dcgm = Ended(status, text, hung=hung)

    return change


def one_gpu_less(world: World) -> None:
    world.view = replace(world.view, count=1, gpus=world.view.gpus[:1])


CONFIG = "sys/bus/pci/devices/0000:54:00.0/config"
PORT = "sys/class/infiniband/mlx5_1/ports/1"
LOST, SLOW = "gpu-lost", "nvlink-error"
ROWS = {
    Check.PRESENCE: (one_gpu_less, LOST, mute, silent),
    Check.PCI: (file(CONFIG, "\xff\xff\xff\xff"), LOST, hang, gone(CONFIG)),
    Check.RECOVERY_ACTION: (
        *(with_(recovery_action=2), "driver-hung", mute, lacking("recovery_action")),
    ),
    Check.MEMORY: (with_(remap_failure=1), "memory-exhausted", mute, lacking(*NVML)),
    Check.NVLINK: (with_(link_state=0), SLOW, mute, with_(link_state=BROKEN)),
    Check.FABRIC: (with_(fabric=(3, 0, 0, 2)), "fabric-not-ready", mute, lacking("fabric")),
    Check.PCIE: (with_(width=4), "pcie-degraded", mute, lacking(*NVML)),
    Check.THERMAL: (with_(margin=-1), "thermal", mute, lacking(*NVML)),
    Check.ADAPTERS: (file(f"{PORT}/state", "1: DOWN"), "nic-degraded", hang, gone(f"{PORT}/rate")),
    Check.DRIVER: (
        file("sys/module/nvidia/version", "999.99.99"),
        "config-mismatch",
        unloaded,
        unloaded,
    ),
    Check.HOST: (
        file("proc/1/mounts", "/dev/x / ext4 ro 0 0"),
        "host-degraded",
        file("proc/1/mounts", "/dev/x /var/lib/kubelet ext4 rw 0 0"),
        file("proc/1/mounts", "/dev/x /var/lib/kubelet ext4 rw 0 0"),
    ),
    Check.DCGM: (
        *(dcgm(REPORT % ("Failure", FAILURE)), "contained-memory"),
        *(dcgm("", None, hung=True), dcgm(REPORT % ("Splendid", ""))),
    ),
    Check.SETTINGS: (with_(ecc_mode=(0, 1)), "config-mismatch", mute, lacking("ecc_mode")),
}
"""By check: what makes it faulty, the fault, what makes its tool mute, what its value absent."""
ELSEWHERE = {Check.LEFT_OVERS}
"""Their tables are in tests/whose."""


class Seen(Subject):
    """A subject that looks at a world."""

    world: World

    def nvml(self) -> View:
        return self.world.view

    def read(self, *patterns: str, size: int) -> Glimpse:
        if self.world.readers_hang:
            return Glimpse({}, {}, hung=True)
        found = [each for one in patterns for each in self.machine.root.glob(one)]
        return Glimpse({each: each.read_bytes()[:size] for each in found}, {})

    def run(self, tool: str, *arguments: str, limit: float = 0.0, grace: float = 0.0) -> Ended:
        del limit, grace
        assert tool == "dcgmi"
        if arguments[0] == "discovery":
            return Ended(0, "2 GPUs found.\n| 1      | PCI Bus ID: 00000000:54:00.0 |\n")
        return self.world.dcgm


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv(expectations.ADAPTERS, "2")
    monkeypatch.setenv(settings.ECC, "on")
    return sound(tmp_path / "m")


def sound(root) -> World:
    tree = Tree(root, replace(KINDS["infiniband"], gpus=2, adapters=2))
    write(root / "usr/bin/dcgmi", "")
    (root / "usr/bin/dcgmi").chmod(0o755)
    gpus = tuple(
        GpuView(index, f"0000:{0x53 + index:02x}:00", values=dict(NVML), links=(LINK, LINK))
        for index in range(2)
    )
    return World(tree, View(driver="580.65.06", count=2, gpus=gpus, whole=True))


def look(world: World, name: str):
    known = {f"0000:{0x53 + index:02x}:00": Gpu(index) for index in range(2)}
    subject = Seen(world.tree.subject.machine, Naming(known, world.tree.root))
    subject.world = world
    return checks.one(name, subject)


def bad(findings) -> set[str]:
    return {each.fault or each.verdict.value for each in findings} - {Verdict.OK.value}


def test_every_passive_check_has_its_row():
    assert set(ROWS) | ELSEWHERE == set(checks.PASSIVE)


@pytest.mark.parametrize("name", ROWS)
def test_a_check_answers_in_five_ways(world, name, tmp_path):
    faulty, fault, mute_tool, absent = ROWS[name]
    well = look(world, name)
    assert bad(well) == set()
    assert well, "sound, and said so"
    for change, expected in ((faulty, {fault}), (mute_tool, None), (absent, None)):
        changed = sound(tmp_path / f"{len(list(tmp_path.iterdir()))}")
        change(changed)
        found = bad(look(changed, name))
        assert found == expected if expected else found, "no health where nothing is told"
    assert bad(look(sound(tmp_path / "again"), name)) == set()
