"""The scripts: which trouble comes when, on which node, and how it must end. Nothing acts here."""

from simulator.demo.fleet import LARGE_FROM
from simulator.demo.scenario import Scenario
from simulator.demo.scripts.large import write_large
from simulator.demo.scripts.small import write_small


def write_scenario(seed: int, count: int) -> Scenario:
    """The script that this seed stands for in a fleet of `count` nodes."""
    return write_large(seed, count) if count >= LARGE_FROM else write_small(seed, count)
