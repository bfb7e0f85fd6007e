"""Faults of jobs are counted within bounds, whatever a log may name."""

from hypothesis import given
from hypothesis import strategies as st

from fleet.part import HOST, Part
from probes.applications import LIMIT, OTHER, ApplicationFault, Applications

A = Part("gpu:0")


def test_a_pod_that_nobody_can_tell_has_a_count_of_its_own():
    counted = Applications()
    counted.add(A, "xid:31", ("p",))
    counted.add(A, "xid:31", ())
    assert counted.counts == {
        ApplicationFault(A, "xid:31", "p"): 1,
        ApplicationFault(A, "xid:31"): 1,
    }


@given(st.integers(min_value=0, max_value=40))
def test_what_is_too_much_is_counted_without_its_pod_and_never_lost(extra):
    counted = Applications()
    for number in range(LIMIT + extra):
        counted.add(A, "xid:31", (f"pod-{number}",))
        counted.add(Part(f"pci:0000:52:{number % 32:02x}"), f"xid:{number}", ())
    assert len(counted.counts) <= LIMIT + 1
    assert sum(counted.counts.values()) == 2 * (LIMIT + extra)
    assert ApplicationFault(HOST, OTHER) in counted.counts
