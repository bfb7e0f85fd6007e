"""A Temporal client, as the Temporal CLI would be configured; waits for a server that is away.

`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, TLS paths or a profile file.
"""

import logging

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError

from fleet.errors import Transient

_log = logging.getLogger(__name__)


async def connect() -> Client:
    """Connect, or raise `Transient` that names the address."""
    settings = ClientConfig.load_client_connect_config()
    try:
        return await Client.connect(
            **settings, data_converter=pydantic_data_converter, runtime=_quiet_runtime()
        )
    except (RuntimeError, RPCError) as problem:
        where = settings.get("target_host", "localhost:7233")
        raise Transient(f"Temporal at {where}: {problem}") from problem


def _quiet_runtime() -> Runtime:
    """The core's own log lines go to our log, never to stdout."""
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio.core"))
    logs = LoggingConfig(filter=TelemetryFilter("ERROR", "ERROR"), forwarding=forwarding)
    return Runtime(telemetry=TelemetryConfig(logging=logs))
