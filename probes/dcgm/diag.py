"""What `dcgmi diag` says, over its versions: JSON of DCGM 3 and 4, or the table. Pure, no raising.

There is no promised schema: names of the root, of results and of warnings changed, arrays have
holes, and text may come first. What is not understood is kept as such, never as passed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from probes.dcgm.document import first_document, items, mapping
from probes.dcgm.table import rows

ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
OUTCOMES_LIMIT = 1_024
NOT_GPU = "not a GPU"
"""In place of a GPU's number: a result about a CPU, a switch, or nothing that has a name."""
_METADATA = "Metadata"
_TELLS_MORE = re.compile(r"(Info|Warning|Error)\b.*")
_RESULT = re.compile(
    r"(Pass|Fail|Warn|Skip|Not Run)\b(?:\s*-\s*(?:All|GPUs?:?\s*([\d, ]+)))?", re.I
)
_OF_ONE = re.compile(r"GPU\s*(\d{1,3}):\s*(Pass|Fail|Warn|Skip|Not Run)\b", re.I)


class Status(Enum):
    """How one test ended for one GPU."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    WARN = "warn"
    SKIP = "skip"
    NOT_RUN = "not run"
    UNLISTED = "unlisted"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test on one GPU, by DCGM's number; an empty one stands for every GPU.

    `severity` and `category` are DCGM's numbers, None where it gives none: before there was a
    category, its severities meant something else, so one without the other is dropped.
    """

    test: str
    gpu: str
    status: Status
    said: str = ""
    severity: int | None = None
    category: int | None = None


@dataclass(frozen=True, slots=True)
class Diag:
    """Everything that one run said; `error` is why it did not run, in DCGM's words."""

    outcomes: tuple[Outcome, ...] = ()
    error: str = ""


def read(text: str) -> Diag:
    """The results in an output; without any outcome where there are none."""
    document = first_document(text)
    if document is None:
        return Diag(tuple(_drawn(text))[:OUTCOMES_LIMIT])
    root = next((mapping(document[name]) for name in ROOTS if name in document), document)
    return Diag(
        outcomes=tuple(_tests(root))[:OUTCOMES_LIMIT],
        error=str(root.get("runtime_error") or ""),
    )


def status_of(said: Any) -> Status:
    """A status by its word, however it is spelt; unlisted for any other."""
    word = " ".join(said.lower().replace("_", " ").split()) if isinstance(said, str) else ""
    spelt = {"skipped": "skip", "passed": "pass", "failed": "fail", "warning": "warn"}
    word = spelt.get(word, word)
    return next((each for each in Status if each.value == word), Status.UNLISTED)


def _tests(root: Mapping[str, Any]) -> Iterator[Outcome]:
    categories = items(root.get("test_categories")) or [root]
    for category in categories:
        for test in items(mapping(category).get("tests")):
            yield from _test(mapping(test))


def _test(test: Mapping[str, Any]) -> Iterator[Outcome]:
    """The summary counts where no single result says as much."""
    name = str(test.get("name") or "a test without a name")
    found = [each for result in items(test.get("results")) for each in _result(name, result)]
    yield from found
    summary = mapping(test.get("test_summary"))
    summed = status_of(summary.get("status"))
    if (summary and summed not in {each.status for each in found}) or not (found or summary):
        yield Outcome(name, "" if summary else NOT_GPU, summed, _said(summary))


def _result(name: str, result: Any) -> Iterator[Outcome]:
    fields = mapping(result)
    status, said = status_of(fields.get("status")), _said(fields)
    numbers = [_numbers(each) for each in items(fields.get("warnings"))]
    severity, category = next((each for each in numbers if None not in each), (None, None))
    for gpu in _gpus(fields):
        yield Outcome(name, gpu, status, said, severity, category)


def _gpus(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """An empty number where a result names no GPU: it is about all of them."""
    if "entity_id" in fields:
        of_gpu = fields.get("entity_group", "GPU") == "GPU"
        return (_number(fields["entity_id"]),) if of_gpu else (NOT_GPU,)
    said = fields.get("gpu_ids", fields.get("gpu_id", ""))
    listed = said.split(",") if isinstance(said, str) else items(said) or [said]
    return tuple(_number(each) for each in listed if each != "") or ("",)


def _number(said: Any) -> str:
    text = str(said).strip()
    return text if text.isascii() and text.isdigit() and len(text) < 4 else NOT_GPU


def _numbers(warning: Any) -> tuple[int | None, int | None]:
    fields = mapping(warning)
    severity, category = fields.get("error_severity"), fields.get("error_category")
    whole = isinstance(severity, int) and isinstance(category, int)
    return (severity, category) if whole else (None, None)


def _said(fields: Mapping[str, Any]) -> str:
    warnings = fields.get("warnings")
    told = [warnings] if isinstance(warnings, str) else items(warnings)
    return "; ".join(_words(each) for each in told)


def _words(warning: Any) -> str:
    if isinstance(warning, dict):
        return str(warning.get("warning") or warning.get("warnings") or "")
    return str(warning)


def _drawn(text: str) -> Iterator[Outcome]:
    """A row a test; rows below it without a name speak of single GPUs, or tell more in words."""
    tests: dict[str, list[Outcome]] = {}
    name = ""
    for row in rows(text):
        if row.section in ("", _METADATA):
            continue
        if row.left:
            name = "" if _TELLS_MORE.fullmatch(row.left) else row.left
        if name:
            tests.setdefault(name, []).extend(_cell(name, row.right, first=bool(row.left)))
    for told in tests.values():
        of_one = [each for each in told if each.gpu]
        known = {each.status for each in of_one}
        yield from of_one
        yield from (each for each in told if not each.gpu and each.status not in known)


def _cell(name: str, said: str, first: bool) -> Iterator[Outcome]:
    if one := _OF_ONE.match(said):
        yield Outcome(name, one[1], status_of(one[2]))
    elif found := _RESULT.match(said):
        for gpu in re.findall(r"\d{1,3}", found[2] or "") or [""]:
            yield Outcome(name, gpu, status_of(found[1]))
    elif first:
        yield Outcome(name, "", Status.UNLISTED, said)
