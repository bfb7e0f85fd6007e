"""What plays NVML's child on a simulated machine answers as the real child does: the same shapes.

The real one asks a C library of ours through the binding; both are asked the same things here. A
name that one has and the other lacks, or a number where the other has a list, is a lie of one.
"""

import pytest

from probes.checks.subject import Subject
from probes.machine import Machine as Seen
from probes.nvml import asks
from probes.nvml.view import GPU_IS_LOST, Mute
from probes.parts import Naming
from simulator.hardware.machine import Machine
from simulator.hardware.nature import LOST, MEMORY


@pytest.fixture
def simulated(tmp_path):
    return Machine.create(tmp_path / "simulated", "node-1", gpus=2)


def look(machine):
    seen = Seen(machine.root, machine.root / "var/lib/gpumend")
    subject = Subject(seen, Naming({}, machine.root))
    subject.begin()
    return subject.nvml()


def shape(value):
    """What kind of answer it is; what a board does not have may be anything on another."""
    if isinstance(value, Mute):
        return "refused" if not value.absent else "absent"
    return "list" if isinstance(value, tuple) else type(value).__name__


def alike(one, other):
    """Names whose answers differ in kind, where both machines have such a value."""
    assert set(one) == set(other)
    shapes = {name: {shape(one[name]), shape(other[name])} - {"absent"} for name in one}
    return {name: kinds for name, kinds in shapes.items() if len(kinds) > 1}


def test_both_answer_the_same_asks_with_the_same_kinds_of_values(simulated, subject):
    subject.begin()
    real, played = subject.nvml(), look(simulated)
    assert (real.whole, played.whole) == (True, True)
    assert (shape(real.driver), shape(real.count)) == (shape(played.driver), shape(played.count))
    ours, theirs = real.gpus[0], played.gpus[0]
    assert set(theirs.values) == {*asks.FIELDS, *asks.CALLS}
    assert alike(ours.values, theirs.values) == {}
    assert len(ours.links) == len(theirs.links) == 18
    assert alike(ours.links[0], theirs.links[0]) == {}
    lists = [name for name, value in theirs.values.items() if isinstance(value, tuple) and value]
    lengths = {name: len(theirs.numbers(name, len(theirs.value(name)))) for name in lists}
    assert {name: len(ours.value(name)) for name in lists} == lengths
    assert len(ours.pci) == len(theirs.pci) == len("0000:53:00")


def test_a_gpu_that_is_lost_is_refused_alike(simulated, subject, state):
    simulated.strike(1, LOST)
    state.put({"gpu.1.handle.return": GPU_IS_LOST})
    subject.begin()
    real, played = subject.nvml(), look(simulated)
    assert real.gpus[1].handle == played.gpus[1].handle == Mute(GPU_IS_LOST)
    assert (real.gpus[1].values, real.gpus[1].links) == (played.gpus[1].values, ())
    assert real.whole is played.whole is True


def test_what_the_checks_read_of_a_fault_is_the_same_value_in_both(simulated, subject, state):
    simulated.strike(1, MEMORY)
    state.put({"gpu.1.field.4": 1, "gpu.1.field.144": 1, "gpu.1.field.230": 1})
    subject.begin()
    real, played = subject.nvml().gpus[1], look(simulated).gpus[1]
    for name in ("ecc_uncorrected", "remap_pending", "recovery_action"):
        assert real.number(name) == played.number(name) == 1
