"""`dcgmi` as the real one behaves, from a state file: `<root>/dcgm.json`. Standard library only.

Commands `discovery`, `health` and `diag`; `engine` says whether one answers. Where none does,
`diag` starts one of its own, as the real one: it leaves a file `embedded`, by which a test knows.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.tools.behaviour import behave


def main(root: Path, arguments: list[str]) -> int:
    said = json.loads((root / "dcgm.json").read_text())
    with (root / "dcgmi.calls").open("a") as calls:
        calls.write(" ".join(arguments) + "\n")
    command = arguments[0]
    behave(said.get("behave", {}).get(command, ""), '{"body": {"Overall Health": {"val')
    if not said.get("engine", True):
        if command != "diag":
            print("Error: unable to establish a connection to the specified host: localhost")
            print("Error: Unable to connect to host engine. Host engine connection invalid.")
            return 21
        (root / "embedded").touch()
    if command in said.get("raw", {}):
        sys.stdout.write(said["raw"][command])
        return int(said.get("exit", {}).get(command, 0))
    print({"discovery": discovery, "health": health, "diag": diag}[command](said, arguments))
    (root / "dcgm.json").write_text(json.dumps({**said, **said.get("afterwards", {})}))
    return int(said.get("exit", {}).get(command, 0))


def discovery(said: dict[str, Any], arguments: list[str]) -> str:
    lines = [f"{len(said['gpus'])} GPUs found."]
    for number, pci in said["gpus"].items():
        lines += [
            f"| {number:<6} | {'Name: NVIDIA H100 80GB HBM3':<68} |",
            f"| {'':<6} | {f'PCI Bus ID: {pci}':<68} |",
            f"| {'':<6} | {'Device UUID: GPU-0a1b2c3d-aaaa-bbbb-cccc-0123456789ab':<68} |",
        ]
    return "\n".join([*lines, "0 NvSwitches found."])


def health(said: dict[str, Any], arguments: list[str]) -> str:
    """`troubles`: lists of group, entity, system, word and text."""
    if not said.get("watched", True):
        return "Error: Health watches not enabled. Please enable watches. "
    troubles = said.get("troubles", [])
    words = [each[3] for each in troubles]
    overall = said.get("overall") or next(
        (each for each in ("Failure", "Warning") if each in words), "Healthy"
    )
    if "--json" not in arguments or said.get("old"):
        return tree(overall, troubles)
    body: dict[str, Any] = {"Overall Health": {"value": overall}}
    for group, entity, system, word, text in troubles:
        one = body.setdefault(group, {"children": {}})["children"].setdefault(
            entity, {"value": word, "children": {"Errors": {"children": {}}}}
        )
        errors = one["children"]["Errors"]["children"]
        errors[system] = {"overflow": [text], "value": word}
    return json.dumps({"body": body, "header": ["Health Monitor Report"]}, indent=3)


def tree(overall: str, troubles: list[Any]) -> str:
    rows = [("Overall Health", overall)]
    for group in dict.fromkeys(each[0] for each in troubles):
        rows.append((group, ""))
        for _, entity, system, word, text in [each for each in troubles if each[0] == group]:
            rows += [(f"-> {entity}", word), ("   -> Errors", ""), (f"      -> {system}", word)]
            rows += [("", text[at : at + 54]) for at in range(0, len(text), 54)]
    frame = f"+{'-' * 27}+{'-' * 58}+"
    lines = [f"| {left:<25} | {right:<56} |" for left, right in rows]
    head = [frame, f"| {'Health Monitor Report':<85}|", f"+{'=' * 27}+{'=' * 58}+"]
    return "\n".join([*head, *lines, frame])


def diag(said: dict[str, Any], arguments: list[str]) -> str:
    """`results`: by test, a status by GPU, or a list of status, severity, category and text."""
    if "runtime_error" in said:
        return json.dumps({"DCGM Diagnostic": {"runtime_error": said["runtime_error"]}})
    form = {3: version_3, 4: version_4}.get(said.get("version", 4), table)
    return form(said["results"])


def version_4(results: dict[str, Any]) -> str:
    tests = []
    for name, by_gpu in results.items():
        rows = []
        for gpu, told in by_gpu.items():
            status, severity, category, text = told if isinstance(told, list) else (told, 0, 0, "")
            row = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": int(gpu)}
            row["status"] = status
            if text:
                row["warnings"] = [
                    {"error_severity": severity, "error_category": category, "warning": text}
                ]
            rows.append(row)
        worst = "Fail" if any(each["status"] == "Fail" for each in rows) else rows[0]["status"]
        tests.append({"name": name, "results": rows, "test_summary": {"status": worst}})
    root = {"test_categories": [{"category": "Hardware", "tests": tests}]}
    return json.dumps({"DCGM Diagnostic": root, "metadata": {"version": "4.2.3"}}, indent=3)


def version_3(results: dict[str, Any]) -> str:
    """With a banner, and holes in its lists."""
    tests: list[Any] = []
    for name, by_gpu in results.items():
        rows = []
        for gpu, told in by_gpu.items():
            status, text = (told[0], told[3]) if isinstance(told, list) else (told, "")
            row = {"gpu_ids": gpu, "status": status}
            rows.append({**row, "warnings": [text]} if text else row)
        tests += [{"name": name, "results": rows}, None]
    root = {"test_categories": [{"category": "Hardware", "tests": tests}], "version": "3.3.9"}
    return "Successfully ran diagnostic for group.\n" + json.dumps({"DCGM GPU Diagnostic": root})


def table(results: dict[str, Any]) -> str:
    frame = f"+{'-' * 27}+{'-' * 48}+"
    lines = ["Successfully ran diagnostic for group.", frame, row("Diagnostic", "Result")]
    lines += ["|-----  Metadata  ----------+" + "-" * 48 + "|", row("DCGM Version", "3.3.8")]
    lines.append("+-----  Hardware  ----------+" + "-" * 48 + "+")
    for name, by_gpu in results.items():
        for status in dict.fromkeys(
            each[0] if isinstance(each, list) else each for each in by_gpu.values()
        ):
            gpus = [gpu for gpu, each in by_gpu.items() if status in (each, each[0])]
            who = "All" if len(gpus) == len(by_gpu) else f"GPUs: {', '.join(gpus)}"
            lines.append(row(name, f"{status} - {who}"))
        lines += [row("Warning", "a text that goes on for longer than there is sp"), row("", "ace")]
    return "\n".join([*lines, frame])


def row(left: str, right: str) -> str:
    return f"| {left:<25} | {right:<46} |"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
