"""The JSON schema and the reference page of the policy document, from the models themselves."""

from collections.abc import Iterator
from typing import Any

from policies.approval_terms import Approval
from policies.budget_terms import Breaker, Budget
from policies.fault_rules import FAULT_RULES
from policies.fault_terms import Attempts, Drain, FaultTerms, Verify
from policies.limit_terms import Limits
from policies.meanings import MEANING
from policies.pairs_terms import Pairs
from policies.policy_rules import POLICY_RULES
from policies.proving_terms import Proving, Sweep
from policies.schema import Policy
from policies.scopes import ScopeLabels
from policies.signal_terms import Signal
from policies.terms import Terms

REGENERATE = "uv run gpumend policy reference > docs/policy.md"

_INTRODUCTION = f"""\
<!-- Generated from the models. Change those, then: {REGENERATE} -->
# The policy file

One YAML file says what gpumend may do, and when. `gpumend policy check FILE` names every mistake
with its line; `gpumend policy explain [--fault NAME] [FILE]` puts it in words; `gpumend policy
schema` prints a JSON schema for editors. The shipped policy is `policies/default.yaml`.

What is left out takes the smallest power: a fault that is not listed is held and handed to a
person, and no step is taken that is not written down. A missing or broken file allows nothing but
what was already running. The whole document goes with each incident, so a change applies to new
incidents.

## How values are written

- A **duration** has a unit: `90s`, `30m`, `24h`, `30d`, `1h30m`. `10` and `12:30` are refused.
- A **percentage** has its sign: `5%`, `0.5%`. It rounds down, with a minimum of one.
- `yes`, `no`, `on`, `off`, `true`, `false` are booleans. Text that looks like one stands in quotes:
  `status: "False"`.
- Numbers are decimal digits. What old YAML reads as something else (`010`, `1e3`, `12:30`,
  `2026-01-01`) is text here, and refused where a number is wanted.
- A key may stand once. Anchors work; merge keys (`<<`), tags and several documents do not.
"""
_FORMS = {
    "gpumend-duration": "duration",
    "gpumend-percentage": "percentage",
    "gpumend-amount": "count or percentage",
    "gpumend-pace": "pace, like `1 per 30s`",
    "gpumend-scope": "scope",
    "gpumend-label": "label key",
}
_TYPES = {"boolean": "yes or no", "integer": "number", "string": "text"}
_PARTS: tuple[tuple[str, type[Terms]], ...] = (
    ("The document", Policy),
    ("budgets", Budget),
    ("breaker", Breaker),
    ("faults", FaultTerms),
    ("drain", Drain),
    ("verify", Verify),
    ("attempts", Attempts),
    ("approvals", Approval),
    ("signals", Signal),
    ("scopes", ScopeLabels),
    ("proving", Proving),
    ("sweep", Sweep),
    ("pairs", Pairs),
    ("limits", Limits),
)
_TITLES = {part.__name__: title for title, part in _PARTS}


def json_schema() -> dict[str, Any]:
    """The JSON schema of the document, defaults written as people write them."""
    schema = Policy.model_json_schema()
    parts = {"Policy": schema, **schema["$defs"]}
    for _, model in _PARTS:
        written = model.model_construct().model_dump(mode="json", warnings=False)
        for key, field in parts[model.__name__]["properties"].items():
            if "default" in field:
                field["default"] = written[key]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def reference() -> str:
    """The reference page, as Markdown."""
    schema = json_schema()
    parts = {"Policy": schema, **schema["$defs"]}
    tables = (_table(title, parts[name], parts) for name, title in _TITLES.items())
    return "\n".join([_INTRODUCTION, *tables, *_faults(), *_rules()])


def _table(title: str, part: dict[str, Any], parts: dict[str, Any]) -> str:
    rows = [
        f"| `{key}` | {_form(field, parts)} | {_default(field)} | {_meaning(field, parts)} |"
        for key, field in part["properties"].items()
    ]
    head = ["| key | form | left out | meaning |", "| --- | --- | --- | --- |"]
    described = part.get("description", "").replace("\n", " ")
    return "\n".join([f"## {title}\n", described, "", *head, *rows, ""])


def _meaning(field: dict[str, Any], parts: dict[str, Any]) -> str:
    part = parts.get(field.get("$ref", "").rpartition("/")[2], {})
    said: str = field.get("description") or part.get("description", "")
    return said.replace("\n", " ").replace("<", "&lt;").replace("|", "&#124;")


def _form(field: dict[str, Any], parts: dict[str, Any]) -> str:
    if field.get("format") in _FORMS:
        return _FORMS[field["format"]]
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return (
            f"[{_TITLES[name]}](#{_TITLES[name]})" if name in _TITLES else _form(parts[name], parts)
        )
    if "enum" in field:
        return "a fault" if len(field["enum"]) == len(MEANING) else _words(field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "anyOf" in field:
        given = (each for each in field["anyOf"] if each.get("type") != "null")
        return " or ".join(_form(each, parts) for each in given)
    if field["type"] == "array":
        return f"list of {_form(field['items'], parts)}"
    if field["type"] == "object":
        return f"by fault: {_form(field['additionalProperties'], parts)}"
    return _TYPES[field["type"]] + _range(field)


def _range(field: dict[str, Any]) -> str:
    if "minimum" in field and "maximum" in field:
        return f" {field['minimum']}-{field['maximum']}"
    return ""


def _words(words: list[str]) -> str:
    return ", ".join(f"`{each}`" for each in words)


def _default(field: dict[str, Any]) -> str:
    if "default" not in field:
        return "**required**"
    default = field["default"]
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, list):
        return "<br>".join(f"`{_plain(each)}`" for each in default) or "none"
    return "as below" if isinstance(default, dict) and default else f"`{default}`" * bool(default)


def _plain(item: object) -> object:
    return ", ".join(f"{k}: {v}" for k, v in item.items()) if isinstance(item, dict) else item


def _faults() -> Iterator[str]:
    yield "## The faults\n"
    yield from (f"- `{name.value}`: {meaning}" for name, meaning in MEANING.items())
    yield ""


def _rules() -> Iterator[str]:
    yield "## What contradicts itself\n"
    yield "Besides wrong words and types, these are mistakes:\n"
    for check in (*(each.check for each in FAULT_RULES), *(each.check for each in POLICY_RULES)):
        because = " ".join((check.__doc__ or "").split())
        yield f"- {check.__name__.replace('_', ' ')}: {because}"
    yield ""
