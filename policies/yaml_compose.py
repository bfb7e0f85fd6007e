"""YAML text to nodes with places, within limits. What the nodes mean is `yaml_tree`.

Scalars are told apart by YAML 1.2's ideas, not by 1.1's: `12:30`, `1e3`, `010`, `2026-01-01` are
text, so that a field which wants something else says so. `yes no on off true false` are booleans,
as people expect of a policy.
"""

import re
from typing import Any

import yaml

MOST_CHARACTERS = 512_000
DEEPEST = 16

TAG = "tag:yaml.org,2002:"
BOOL = re.compile(r"(yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|true|True|TRUE|false|False|FALSE)\Z")
INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\Z")
NULL = re.compile(r"(~|null|Null|NULL|)\Z")


class _Loader(yaml.SafeLoader):
    """Only composes; its resolvers are the three patterns above."""


_Loader.yaml_implicit_resolvers = {
    None: [(f"{TAG}bool", BOOL), (f"{TAG}int", INT), (f"{TAG}null", NULL)]
}


class Refused(Exception):
    """The text is not a document that we read: what, the way out, and where (a mark or None)."""

    def __init__(self, what: str, remedy: str, mark: Any = None) -> None:
        """What is wrong, what to do, and where."""
        super().__init__(what)
        self.what, self.remedy, self.mark = what, remedy, mark


def compose(text: str) -> yaml.Node:
    """The root node; raises `Refused`, or an error of yaml for what is not YAML."""
    if len(text) > MOST_CHARACTERS:
        raise Refused(f"more than {MOST_CHARACTERS} characters", "a policy is a few hundred lines")
    _check_depth(text)
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
    finally:
        loader.dispose()
    if root is None:
        raise Refused("the document is empty", "start with budgets: and faults:")
    return root


def _check_depth(text: str) -> None:
    """Before composing, which recurses."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            what = f"nested deeper than {DEEPEST} levels"
            raise Refused(what, "a policy needs five; look for a stray bracket", event.start_mark)
