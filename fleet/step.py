"""The words of the ladder, and what a step on the node itself is asked and answers.

The order of the words, and what may follow what, is `policies/ladder.py`.
"""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.pair import PairPlace
from fleet.part import Part, parse_part
from fleet.pod import parse_pods


class Step(StrEnum):
    """One rung of the ladder. Some serve others: `recall` (past attempts, means of repair),
    `give-back` (the lease), `launch` (a successor before a replace), `idle` (whether Pods use the
    node's GPUs, while they may).
    """

    HOLD = "hold"
    TOLERATE = "tolerate"
    LEASE = "lease"
    DRAIN = "drain"
    END_JOB = "end-job"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    LAUNCH = "launch"
    REPLACE = "replace"
    VERIFY = "verify"
    RELEASE = "release"
    PROBATION = "probation"
    CLOSE = "close"
    HAND_OFF = "hand-off"
    RECALL = "recall"
    GIVE_BACK = "give-back"
    IDLE = "idle"


REPAIRS = (Step.END_JOB, Step.RESET_GPU, Step.REBOOT, Step.REPLACE)
"""The rungs that a policy lists under `steps`, mildest first."""


class Means(StrEnum):
    """By what the engine can repair a node. What there is differs from node to node.

    INSIDE: a Pod on the node, so only while it answers. PROVIDER: whoever runs the machine restarts
    it. POWER: its power is cut. LAUNCH: a successor can be had before the node goes. REPLACE: the
    machine can be given back for another.
    """

    INSIDE = "inside"
    PROVIDER = "provider"
    POWER = "power"
    LAUNCH = "launch"
    REPLACE = "replace"


class NodeStepResult(StrEnum):
    """How a step on the node ended: done, tried in vain, not tried since its premise was gone."""

    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


RESULT_LIMIT = 4_096
"""Bytes of a Pod's termination message; the kubelet cuts what is longer."""


@dataclass(frozen=True, slots=True)
class NodeStepRequest:
    """What a pinned Pod is told: everything that it must check itself before it acts.

    `operation` names the Pod and is in the history before the call. `checks` are names of checks
    for a verify, `parts` what is to be reset or looked at (empty: the whole node). `pair` is where
    it meets another node, `word` what a trial in pairs has concluded of this one.
    """

    operation: str
    incident: str
    step: Step
    boot_id: str
    not_after: datetime
    parts: tuple[Part, ...] = ()
    checks: tuple[str, ...] = ()
    pair: PairPlace | None = None
    word: Finding | None = None


@dataclass(frozen=True, slots=True)
class NodeStepReport:
    """What a pinned Pod answers: a bounded termination message, worst finding first.

    `more` counts the findings that did not fit.
    """

    operation: str
    step: Step
    result: NodeStepResult
    boot_id: str
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    more: int = 0


def format_report(report: NodeStepReport, limit: int = RESULT_LIMIT) -> str:
    """JSON of at most `limit` bytes; evidence goes first, then findings from the end."""
    kept = report
    text = _dump(kept)
    if len(text.encode()) > limit:
        bare = tuple(replace(each, evidence="") for each in report.findings)
        kept = replace(report, findings=bare, reason=report.reason[:500])
        text = _dump(kept)
    while len(text.encode()) > limit and kept.findings:
        kept = replace(kept, findings=kept.findings[:-1], more=kept.more + 1)
        text = _dump(kept)
    return text


def parse_report(text: str) -> NodeStepReport:
    """Read a termination message; raise ValueError if it is cut, foreign or empty."""
    try:
        fields = json.loads(text)
        return NodeStepReport(
            operation=fields["operation"],
            step=Step(fields["step"]),
            result=NodeStepResult(fields["result"]),
            boot_id=fields["boot_id"],
            reason=fields.get("reason", ""),
            findings=tuple(_finding(each) for each in fields.get("findings", ())),
            more=fields.get("more", 0),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ValueError(f"not the report of a node step: {text[:200]!r} ({problem})") from problem


def format_finding(finding: Finding) -> str:
    """One finding, as a command line has it."""
    return json.dumps(_fields(finding))


def parse_finding(text: str) -> Finding:
    """Read it back; raises ValueError for anything else."""
    try:
        return _finding(json.loads(text))
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"not a finding: {text[:200]!r} ({problem})") from problem


def _dump(report: NodeStepReport) -> str:
    fields: dict[str, Any] = {
        "operation": report.operation,
        "step": report.step.value,
        "result": report.result.value,
        "boot_id": report.boot_id,
        "reason": report.reason,
        "findings": [_fields(each) for each in report.findings],
        "more": report.more,
    }
    return json.dumps({key: value for key, value in fields.items() if value}, ensure_ascii=True)


def _fields(finding: Finding) -> dict[str, Any]:
    fields = {
        "check": finding.check,
        "part": finding.part,
        "verdict": finding.verdict.value,
        "fault": finding.fault.value if finding.fault else "",
        "code": finding.code,
        "advice": finding.advice.value if finding.fault else "",
        "severity": finding.severity.value,
        "evidence": finding.evidence,
        "pods": finding.pods,
        "value": finding.value,
    }
    return {key: value for key, value in fields.items() if value}


def _finding(fields: dict[str, Any]) -> Finding:
    fault = fields.get("fault")
    return Finding(
        check=fields["check"],
        part=parse_part(fields["part"]),
        verdict=Verdict(fields["verdict"]),
        fault=FaultName(fault) if fault else None,
        code=fields.get("code", ""),
        advice=Advice(fields.get("advice", Advice.NONE)),
        severity=Severity(fields.get("severity", Severity.INFO)),
        evidence=fields.get("evidence", ""),
        pods=parse_pods(",".join(fields.get("pods", ()))),
        value=float(fields.get("value", 0.0)),
    )
