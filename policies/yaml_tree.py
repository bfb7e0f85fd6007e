"""YAML text to plain values that remember where they stood. Nothing here knows what a policy is.

A key is always the text that was written. Tags beyond the plain ones, merge keys, several documents
and very large or deep files are refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from policies.mistakes import Mistake, Path, format_path
from policies.yaml_compose import BOOL, DEEPEST, INT, TAG, Refused, compose

MOST_NODES = 20_000
"""Nodes after aliases are written out: a few lines of YAML can stand for billions."""

_TRUE = ("yes", "on", "true")
_TAGS = {f"{TAG}{each}" for each in ("map", "seq", "str", "int", "bool", "null")}


@dataclass(slots=True)
class Tree:
    """Plain values (dict, list, str, int, bool, None), positions by path, and what was refused.

    `keys` holds where the key of a mapping's entry stands, `values` where its value does.
    """

    source: str
    value: Any = None
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def mistake(self, path: Path, what: str, remedy: str, at_key: bool = False) -> Mistake:
        """A mistake at a path, or at the nearest place above it that was written."""
        line, column = self._position(path, at_key)
        return Mistake(self.source, line, column, format_path(path), what, remedy)

    def _position(self, path: Path, at_key: bool) -> tuple[int, int]:
        if at_key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, (1, 1))


def read_tree(text: str, source: str) -> Tree:
    """Read one YAML document. Mistakes are in the tree; its value is what could be read."""
    tree = Tree(source)
    try:
        root = compose(text)
    except Refused as refused:
        tree.mistakes.append(_at(source, refused.mark, refused.what, refused.remedy))
    except yaml.reader.ReaderError as problem:
        tree.mistakes.append(_unreadable(text, source, problem))
    except yaml.MarkedYAMLError as problem:
        what = " ".join(filter(None, (problem.context, problem.problem)))
        mark = problem.problem_mark or problem.context_mark
        tree.mistakes.append(
            _at(source, mark, f"not YAML: {what}", "see the line and the one above")
        )
    else:
        _Reading(tree).read(root)
    return tree


class _Reading:
    """One walk over the composed nodes; aliases are written out, up to the limits."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.left = MOST_NODES

    def read(self, root: yaml.Node) -> None:
        try:
            self.tree.value = self._value(root, ())
        except Refused as refused:
            mistake = _at(self.tree.source, refused.mark, refused.what, refused.remedy)
            self.tree.mistakes.append(mistake)

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self.left -= 1
        if self.left < 0 or len(path) > DEEPEST:
            what = f"aliases stand for more than {MOST_NODES} values or {DEEPEST} levels"
            raise Refused(what, "write the values out", node.start_mark)
        self.tree.values[path] = _line_column(node.start_mark)
        if node.tag not in _TAGS:
            self._refuse(node, path, f"the tag {node.tag} is not allowed", "write the plain value")
        if isinstance(node, yaml.MappingNode):
            return {key: self._value(each, (*path, key)) for key, each in self._entries(node, path)}
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, (*path, index)) for index, each in enumerate(node.value)]
        return self._scalar(node, path)

    def _entries(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, yaml.Node]]:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, path, "a key must be one word", "write name: value")
            elif key.value in seen:
                first = self.tree.keys[(*path, key.value)][0]
                what = f"{key.value} is already there, on line {first}"
                self._refuse(key, (*path, key.value), what, "keep one of the two")
            else:
                seen.add(key.value)
                self.tree.keys[(*path, key.value)] = _line_column(key.start_mark)
                yield key.value, value

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        text, tag = str(node.value), str(node.tag).removeprefix(TAG)
        if tag == "null":
            return None
        if tag == "bool" and BOOL.fullmatch(text):
            return text.lower() in _TRUE
        if tag == "int" and INT.fullmatch(text):
            return int(text)
        return text

    def _refuse(self, node: yaml.Node, path: Path, what: str, remedy: str) -> None:
        line, column = _line_column(node.start_mark)
        mistake = Mistake(self.tree.source, line, column, format_path(path), what, remedy)
        self.tree.mistakes.append(mistake)


def _line_column(mark: Any) -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _at(source: str, mark: Any, what: str, remedy: str) -> Mistake:
    return Mistake(source, *_line_column(mark), "", what, remedy)


def _unreadable(text: str, source: str, problem: yaml.reader.ReaderError) -> Mistake:
    before = text[: problem.position]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    what = f"a character that YAML does not allow: {problem.reason}"
    return Mistake(source, line, column, "", what, "take it out")
