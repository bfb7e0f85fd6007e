"""A Temporal client, configured as the Temporal CLI's, and what stands in while there is none.

`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, TLS paths or a profile file.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    MetricBuffer,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError

from activities.adapters.payloads import DATA_CONVERTER
from activities.adapters.reaching import reach
from fleet.errors import Transient

LOCAL = "localhost:7233"
"""Where no address is set or it is empty, as the Temporal CLI has it."""

_log = logging.getLogger(__name__)


class Connection:
    """The way to a Temporal that may be away when the process starts.

    Whoever needs it asks for the client each time; before the server has answered and was found
    fit, that is `Transient`, as it would be later when the server is away.
    """

    def __init__(
        self, check: Callable[[Client], Awaitable[None]], metrics: MetricBuffer | None = None
    ) -> None:
        """`check` raises what ends the process where the server must be mended first.

        `metrics` takes what the SDK measures; it serves one runtime, so that is made once.
        """
        self._check = check
        self._runtime = _quiet_runtime(metrics)
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client, or `Transient`."""
        if self._client is None:
            raise Transient("Temporal has not answered since this process started")
        return self._client

    async def open(self, limit: timedelta | None) -> Client:
        """Connect and check, waiting for a server that is away; `limit` as `reach` has it."""
        client = await reach("temporal", lambda: connect(self._runtime), limit)
        await reach("temporal", lambda: self._check(client), limit)
        self._client = client
        return client


async def connect(runtime: Runtime | None = None) -> Client:
    """Connect, or raise `Transient` that names the address, or the setting that cannot be read."""
    try:
        settings = ClientConfig.load_client_connect_config()
    except (OSError, RuntimeError, ValueError) as problem:
        raise Transient(f"the settings of Temporal cannot be read: {problem}") from problem
    where = settings.setdefault("target_host", LOCAL)
    try:
        return await Client.connect(
            **settings,
            data_converter=DATA_CONVERTER,
            runtime=runtime or _quiet_runtime(),
        )
    except (RuntimeError, RPCError) as problem:
        raise Transient(f"Temporal at {where}: {problem}") from problem


def _quiet_runtime(metrics: MetricBuffer | None = None) -> Runtime:
    """The core's own log lines go to our log, never to stdout."""
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio.core"))
    logs = LoggingConfig(filter=TelemetryFilter("ERROR", "ERROR"), forwarding=forwarding)
    return Runtime(telemetry=TelemetryConfig(logging=logs, metrics=metrics))
