"""A machine whose driver is the fake, and the state by which it answers."""

import pytest

from probes.checks.subject import Subject
from probes.machine import Machine
from probes.parts import Gpu, Naming
from tests.nvml.fake import State, address, build

ADDRESSES = {address(index)[4:-2].lower(): Gpu(index) for index in range(8)}


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def state(tmp_path, monkeypatch):
    state = State(tmp_path / "nvml.state")
    monkeypatch.setenv("FAKE_NVML_STATE", str(state.path))
    return state


@pytest.fixture
def subject(tmp_path, library, state, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    return Subject(Machine(tmp_path / "root", tmp_path / "state"), Naming(ADDRESSES))
