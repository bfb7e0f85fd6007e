"""What runs count by Temporal's meter, read as a scrape reads it."""

import gc

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig

from activities.adapters.payloads import DATA_CONVERTER
from activities.adapters.temporal_figures import TemporalFigures
from activities.adapters.temporal_metrics import TemporalMetrics, metric_buffer
from fleet.step import Step
from tests.incidents.virtual import a_fault
from tests.temporal.fakes import Truth
from tests.temporal.running import opened_now, running

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_incident_is_counted_once_with_its_fault_its_end_and_its_times(server):
    buffer = metric_buffer()
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))
    client = await Client.connect(
        server.client.service_client.config.target_host,
        namespace=server.client.namespace,
        data_converter=DATA_CONVERTER,
        runtime=runtime,
    )
    truth = Truth((a_fault("gpu:3", "uncontained-memory"),), heals=(Step.RESET_GPU,))
    async with running(client, truth) as run:
        await run.result()
    registry = CollectorRegistry()
    registry.register(TemporalMetrics(buffer))
    lines = generate_latest(registry).decode().splitlines()
    ours = [each for each in lines if each.startswith("gpumend_incident")]
    about = 'fault="uncontained-memory",namespace="default"'
    assert f"gpumend_incidents_opened_total{{{about}}} 1.0" in ours
    assert f'gpumend_incidents_ended_total{{end="repaired",{about}}} 1.0' in ours
    for step in ("hold", "lease", "drain", "reset-gpu", "verify", "release"):
        labels = f'{{namespace="default",step="{step}"}}'
        assert f"gpumend_incident_reached_seconds_count{labels} 1.0" in ours
    assert any(each.startswith("temporal_workflow_completed_total") for each in lines)
    del client
    gc.collect()  # a client that outlives its loop may abort the process


async def test_open_incidents_are_counted_by_what_they_are_at(server):
    opening = opened_now()
    figures = TemporalFigures(lambda: server.client, opening.node.cluster)
    before = (await figures.incidents())["hand-off"]
    truth = Truth((a_fault("host", "thermal"),))
    async with running(server.client, truth, opening=opening) as run:

        async def counted() -> bool:
            return (await figures.incidents())["hand-off"] == before + 1

        await run.until(counted)
        await run.order("cancel")
        await run.result()


async def test_a_budget_that_nobody_asked_has_no_ledger(server):
    assert await TemporalFigures(lambda: server.client, "nowhere").ledger() is None
