"""The parts of `gpumend bench probes` that judge: what is met is met by its figures alone."""

import pytest

from console.bench import BENCHMARKS, probes_cost, probes_hung, probes_latency, probes_machine
from probes.checks.subject import Subject
from probes.parts import Naming

CHEAP = {"agent_mib": 30.0, "largest_child_mib": 33.0, "core_percent": 0.4}
TIMELY = {"tools_hung": 5, "late_seconds": 0.6, "others_delayed_seconds": 1.5}


@pytest.mark.parametrize(
    ("judge", "found", "spoilt"),
    [
        (probes_cost.met, CHEAP, {"agent_mib": 40.1}),
        (probes_cost.met, CHEAP, {"largest_child_mib": 64.1}),
        (probes_cost.met, CHEAP, {"core_percent": 0.51}),
        (probes_hung.met, TIMELY, {"tools_hung": 4}),
        (probes_hung.met, TIMELY, {"late_seconds": 1.1}),
        (probes_hung.met, TIMELY, {"others_delayed_seconds": 5.1}),
    ],
)
def test_one_figure_beyond_its_limit_spoils_it(judge, found, spoilt):
    assert judge(found) is True
    assert judge({**found, **spoilt}) is False


def test_the_worst_of_a_hundred_is_the_percentile():
    assert probes_latency.summed([float(each) for each in range(1, 101)]) == {
        "p50_ms": 50.5,
        "p99_ms": 100.0,
    }


def test_the_machine_of_the_benchmark_is_whole_and_its_library_says_what_is_played(
    tmp_path, monkeypatch
):
    machine, environment = probes_machine.build(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    subject = Subject(machine, Naming({}, machine.root))
    subject.begin()
    view = subject.nvml()
    assert (view.whole, view.count, len(view.gpus[7].links)) == (True, 8, 18)
    assert view.gpus[0].number("power_limit") == 700_000
    assert view.gpus[0].value("fabric") == (3, 0, 0, 1)
    assert view.gpus[7].links[17]["speed"] == 26_562
    assert "probes" in BENCHMARKS
