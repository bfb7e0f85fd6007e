"""One look at a node for a person on it: every check with its verdict, evidence and time taken."""

import json
from typing import Any

from console import exits
from fleet.check import ACTIVE
from fleet.finding import WORST_FIRST, Verdict
from probes.agent.once import Looked
from probes.agent.rounds import Timed
from probes.checks.about import ABOUT, as_page

TOLD_LIMIT = 160
"""Characters of what a row says: evidence in full is in `--json`."""


def show(looked: Looked, as_json: bool) -> None:
    """Print it, to standard output."""
    if as_json:
        print(json.dumps({"conditions": _conditions(looked), "checks": _checks(looked)}))
        return
    print(f"{'CHECK':<16} {'PART':<16} {'VERDICT':<8} {'SECONDS':>7}  FINDING")
    for timed in looked.checks:
        for row in rows(timed):
            print(row)
    print("\nWhat an agent would say of the Node after this one look:")
    for each in looked.conditions:
        print(f"{each.type:<20} {each.status:<8} {each.reason}")
        for line in each.message.splitlines()[1:]:
            print(f"    {line}")


def rows(timed: Timed) -> list[str]:
    """The findings of one check, worst first; parts that are well share a row.

    Where an active check measured something, what it was is told, and what of it was not judged.
    The time is the whole check's; it stands in its first row.
    """
    fine = [each for each in timed.findings if each.verdict is Verdict.OK]
    measured = [each for each in fine if each.evidence and timed.check in ACTIVE]
    well = [each for each in fine if each not in measured]
    bad = sorted(
        (each for each in timed.findings if each.verdict is not Verdict.OK),
        key=lambda each: (WORST_FIRST.index(each.verdict), each.part),
    )
    told: list[tuple[str, str, str]] = [
        (each.part, each.verdict.value, _words(each.fault or "", each.code, each.evidence))
        for each in bad
    ]
    told += [(each.part, "ok", each.evidence) for each in measured]
    if well:
        parts = well[0].part if len(well) == 1 else f"{len(well)} parts"
        said_of = dict.fromkeys(each.evidence for each in well if each.evidence)
        told.append((parts, "ok", "; ".join(said_of)))
    told = told or [("-", "none", "nothing of the kind on this machine")]
    times = (f"{timed.seconds:.2f}", *[""] * len(told))
    return [
        f"{timed.check:<16} {part:<16} {verdict:<8} {time:>7}  {said[:TOLD_LIMIT]}".rstrip()
        for (part, verdict, said), time in zip(told, times, strict=False)
    ]


def _words(*said: str) -> str:
    return " ".join(filter(None, said))


def list_checks(as_json: bool, page: bool) -> None:
    """Print what each check reads and why."""
    if page:
        print(as_page(), end="")
    elif as_json:
        print(json.dumps([_about(name) for name in ABOUT]))
    else:
        for name, about in ABOUT.items():
            print(
                f"{name}\n    asks   {about.asks}\n    reads  {about.reads}\n    why    {about.why}"
                f"\n    names  {', '.join(about.faults)}"
            )


def _about(name: Any) -> dict[str, Any]:
    about = ABOUT[name]
    faults = [each.value for each in about.faults]
    return {"check": name.value, "asks": about.asks, "reads": about.reads, "faults": faults}


def _conditions(looked: Looked) -> list[dict[str, str]]:
    fields = ("type", "status", "reason", "message")
    return [{name: getattr(each, name) for name in fields} for each in looked.conditions]


def _checks(looked: Looked) -> list[dict[str, Any]]:
    return [
        {
            "check": timed.check,
            "part": each.part,
            "verdict": each.verdict.value,
            "fault": each.fault.value if each.fault else None,
            "code": each.code,
            "evidence": each.evidence,
            "seconds": round(timed.seconds, 3),
        }
        for timed in looked.checks
        for each in timed.findings
    ]


def status_of(looked: Looked, named: bool) -> int:
    """The exit status: of everything by the conditions, of named checks by their own findings.

    A named check that could not tell is no success: whoever asked for it waits for its word.
    """
    found = [each.verdict for timed in looked.checks for each in timed.findings]
    sick = not named and any(each.status != "True" for each in looked.conditions)
    if sick or Verdict.FAULT in found:
        return exits.FOUND
    return exits.UNREACHABLE if named and Verdict.UNKNOWN in found else exits.OK
