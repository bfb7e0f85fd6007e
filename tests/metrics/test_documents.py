"""Dashboard, alert rules and the page about them use what the code measures, and nothing else."""

import json
import re
from pathlib import Path

import pytest
import yaml

from activities.step_events import _DONE, _TOLD
from fleet.agent_figure import AGENT_FIGURES
from fleet.figure import FIGURES, FigureKind
from tests.house.test_glossary import ROOT

PAGE = (ROOT / "docs/metrics.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy/prometheus-rules.yaml").read_text())
ALERTS = [each for group in RULES["spec"]["groups"] for each in group["rules"]]
DASHBOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))

ALL = (*FIGURES, *AGENT_FIGURES)
OF_TEMPORAL = {
    "temporal_workflow_task_execution_failed_total",
    "temporal_workflow_task_schedule_to_start_latency_seconds_bucket",
    "temporal_activity_schedule_to_start_latency_seconds_bucket",
    "temporal_worker_task_slots_available",
}
"""Of the SDK's: its documentation lists them, in seconds and with `_total` as we expose them."""


def known():
    found = set(OF_TEMPORAL)
    for each in ALL:
        histogram = each.kind is FigureKind.HISTOGRAM
        ends = ("_bucket", "_count", "_sum") if histogram else ("",)
        found |= {each.exposed + end for end in ends}
    return found


def used(expression):
    return set(re.findall(r"\b(?:gpumend|temporal)_[a-z_]+", expression))


def labels_of(expression):
    """Label names in matchers and groupings, by the metrics of the expression."""
    matched = re.findall(r"[{,]\s*([a-z_]+)\s*(?:=~|!=|=)", expression)
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    return {*matched, *(name.strip() for each in grouped for name in each.split(","))}


def queries():
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                yield pytest.param(target["expr"], id=panel["title"])
    for each in ALERTS:
        yield pytest.param(each["expr"], id=each["alert"])


@pytest.mark.parametrize("expression", tuple(queries()))
def test_a_query_uses_metrics_and_labels_that_there_are(expression):
    assert used(expression)
    assert used(expression) <= known()
    labels = {label for each in ALL for label in each.labels}
    of_others = {"le", "workflow_type", "worker_type", "instance"}
    assert labels_of(expression) <= {*labels, *of_others}


def test_there_is_a_dashboard_whose_panels_do_not_overlap():
    assert DASHBOARDS
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
            assert not cells & taken, panel["title"]
            assert at["x"] + at["w"] <= 24
            taken |= cells
        assert len({each["id"] for each in board["panels"]}) == len(board["panels"])


@pytest.mark.parametrize("figure", ALL, ids=lambda each: each.name)
def test_every_figure_is_on_the_page_with_its_meaning(figure):
    labels = ", ".join(f"`{each}`" for each in figure.labels) or "-"
    assert f"| `{figure.exposed}` | {figure.kind} | {labels} | {figure.text} |" in PAGE


def test_the_page_names_no_metric_that_is_gone():
    assert used(PAGE) <= known() | {each.exposed for each in ALL}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: each["alert"])
def test_every_alert_is_explained_and_says_what_to_do(alert):
    assert f"| `{alert['alert']}` |" in PAGE
    assert alert["annotations"]["description"].endswith((".", "?", "`)."))
    assert alert["labels"]["severity"] in ("warning", "critical")


def test_the_page_explains_no_alert_that_is_gone():
    named = set(re.findall(r"^\| `(Gpumend\w+)` \|", PAGE, re.MULTILINE))
    assert named == {each["alert"] for each in ALERTS}


def test_no_series_of_the_page_that_is_of_the_exporter_of_dcgm_is_ours():
    theirs = set(re.findall(r"DCGM_[A-Z0-9_]+", PAGE))
    assert len(theirs) > 10
    assert not [each for each in ALL if each.exposed.upper().startswith("DCGM")]


def test_every_event_is_on_the_page():
    reasons = {reason for reason, _ in _DONE.values()}
    reasons |= {_TOLD[each][0] for each in _TOLD if each in ("ask", "hand-off")}
    assert not [each for each in reasons if f"`{each}`" not in PAGE]


@pytest.mark.parametrize("module", ["activities/adapters/webhook.py", "console/worker_settings.py"])
def test_every_setting_of_telling_is_on_the_page(module):
    text = (Path(ROOT) / module).read_text()
    for name in set(re.findall(r'"(GPUMEND_NOTIFY_[A-Z_]+)"', text)):
        assert name in PAGE
    assert "GPUMEND_METRICS_ADDRESS" in PAGE
