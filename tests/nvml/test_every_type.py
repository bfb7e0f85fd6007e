"""What the child tells is what the driver was told, on every generation that a machine type has."""

from collections.abc import Iterable

import pynvml
import pytest

from probes import catalog
from probes.nvml import asks
from probes.nvml.view import NOT_SUPPORTED, Mute

CONSTANTS = {
    "ecc_corrected": "ECC_SBE_VOL_TOTAL",
    "ecc_uncorrected": "ECC_DBE_VOL_TOTAL",
    "retired_sbe": "RETIRED_SBE",
    "retired_dbe": "RETIRED_DBE",
    "retired_pending": "RETIRED_PENDING",
    "memory_temperature": "MEMORY_TEMP",
    "nvlink_count": "NVLINK_LINK_COUNT",
    "pcie_replays": "PCIE_REPLAY_COUNTER",
    "remapped_uncorrectable": "REMAPPED_UNC",
    "remap_pending": "REMAPPED_PENDING",
    "remap_failure": "REMAPPED_FAILURE",
    "c2c_count": "C2C_LINK_COUNT",
    "pcie_non_fatal": "PCIE_COUNT_NON_FATAL_ERROR",
    "pcie_fatal": "PCIE_COUNT_FATAL_ERROR",
    "slowdown_limit": "TEMPERATURE_SLOWDOWN_TLIMIT",
    "memory_limit": "TEMPERATURE_MEM_MAX_TLIMIT",
    "recovery_action": "GET_GPU_RECOVERY_ACTION",
    "sw_thermal_ns": "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "hw_thermal_ns": "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "power_brake_ns": "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
    "replay": "NVLINK_ERROR_DL_REPLAY",
    "recovery": "NVLINK_ERROR_DL_RECOVERY",
    "crc": "NVLINK_ERROR_DL_CRC",
    "speed": "NVLINK_GET_SPEED",
    "state": "NVLINK_GET_STATE",
    "malformed": "NVLINK_COUNT_MALFORMED_PACKET_ERRORS",
    "overrun": "NVLINK_COUNT_BUFFER_OVERRUN_ERRORS",
    "receive_errors": "NVLINK_COUNT_RCV_ERRORS",
    "integrity": "NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS",
    "recovery_failed": "NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
    "status": "C2C_LINK_GET_STATUS",
}
BEFORE_BLACKWELL = frozenset({"replay", "recovery", "crc"})
SINCE_BLACKWELL = frozenset({"malformed", "overrun", "receive_errors", "integrity"})
SINCE_BLACKWELL |= {"recovery_failed"}
PAGES = frozenset({"retired_sbe", "retired_dbe", "retired_pending"})
REMAPS = frozenset({"remapped_uncorrectable", "remap_pending", "remap_failure"})
ALWAYS = frozenset(asks.FIELDS) - PAGES - REMAPS - {"c2c_count"}

GENERATIONS = {
    "volta": (6, ALWAYS | PAGES, BEFORE_BLACKWELL, 0),
    "ampere": (12, ALWAYS | REMAPS, BEFORE_BLACKWELL, 0),
    "hopper": (18, ALWAYS | REMAPS, BEFORE_BLACKWELL, 0),
    "blackwell": (18, ALWAYS | REMAPS, SINCE_BLACKWELL, 0),
    "grace-blackwell": (18, ALWAYS | REMAPS | {"c2c_count"}, SINCE_BLACKWELL, 2),
    "card": (0, ALWAYS | REMAPS, frozenset(), 0),
}
"""Links, fields of the device, counters of a link, C2C links."""
SIZES = frozenset({"nvlink_count", "c2c_count"})
MODELS = {
    "volta": {"v100"},
    "ampere": {"a100"},
    "hopper": {"h100", "h200"},
    "blackwell": {"b200", "b300"},
    "grace-blackwell": {"gb200"},
}


def test_each_field_is_the_one_that_the_binding_knows_by_its_name():
    numbers = {**asks.FIELDS, **asks.LINK_FIELDS, **asks.C2C_FIELDS}
    assert set(CONSTANTS) == set(numbers)
    for name, constant in CONSTANTS.items():
        assert getattr(pynvml, f"NVML_FI_DEV_{constant}") == numbers[name], name


def test_every_machine_with_nvlink_is_of_a_generation():
    known = {each for models in MODELS.values() for each in models}
    families = ("p3", "p4", "p5", "p6")
    types = catalog.instance_types().values()
    assert {each.gpu_model for each in types if each.name.startswith(families)} == known


def told(gpu: int, name: str, link: int = 0) -> int:
    """A number of its own for every value, so that none can stand for another."""
    return 1 + gpu * 10_000 + link * 100 + sorted(CONSTANTS).index(name)


def said_of(gpu: int, generation: str) -> dict[str, int]:
    """What the driver is told of one GPU, by the keys of its state file."""
    links, fields, counters, c2c = GENERATIONS[generation]
    of_gpu = {asks.FIELDS[name]: told(gpu, name) for name in fields - SIZES}
    of_links = {
        f"{link}.field.{asks.LINK_FIELDS[name]}": told(gpu, name, link)
        for link in range(links)
        for name in (*counters, "speed", "state")
    }
    of_links |= {f"{link}.field.171": told(gpu, "status", link) for link in range(c2c)}
    return {
        **{f"gpu.{gpu}.field.{number}": value for number, value in of_gpu.items()},
        **{f"gpu.{gpu}.link.{key}": value for key, value in of_links.items()},
        f"gpu.{gpu}.field.91": links,
        **({f"gpu.{gpu}.field.170": c2c} if c2c else {}),
    }


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_value_is_what_the_driver_was_told_and_what_it_lacks_is_absent(
    subject, state, generation
):
    links, fields, counters, c2c = GENERATIONS[generation]
    sizes = {"nvlink_count": links, "c2c_count": c2c}
    state.put({key: None for key in state.said if ".field." in key})
    state.put({"count": 2, **said_of(0, generation), **said_of(1, generation)})
    subject.begin()
    view = subject.nvml()
    assert (view.whole, len(view.gpus)) == (True, 2)
    for gpu in view.gpus:
        index = gpu.index
        expected = {name: sizes.get(name, told(index, name)) for name in fields}
        assert {name: gpu.value(name) for name in asks.FIELDS} == {
            **absent(asks.FIELDS),
            **expected,
        }
        assert (len(gpu.links), len(gpu.c2c)) == (links, c2c)
        for number, link in enumerate(gpu.links):
            there = {name: told(index, name, number) for name in (*counters, "speed", "state")}
            assert link == {**absent(asks.LINK_FIELDS), **there}
        assert [each["status"] for each in gpu.c2c] == [
            told(index, "status", number) for number in range(c2c)
        ]


def absent(names: Iterable[str]) -> dict[str, Mute]:
    return dict.fromkeys(names, Mute(NOT_SUPPORTED))
