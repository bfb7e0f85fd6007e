"""A policy file, checked as a whole: a `Policy`, or every mistake at once.

Three passes: the text (`yaml_tree`), the shape (`shape`), what its parts say to each other
(`fault_rules`, `policy_rules`). A mistake in one place does not hide those in others: what is
broken is left out, and the rules run on the rest.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import resources

from policies.fault_rules import FAULT_RULES
from policies.mistakes import Complaint, Mistake, Path, PolicyErrors
from policies.policy_rules import POLICY_RULES
from policies.salvage import salvage
from policies.schema import Policy
from policies.shape import check_shape
from policies.yaml_tree import Tree, read_tree

__all__ = ["Mistake", "PolicyErrors", "default_policy", "default_text", "load"]

DEFAULT = "default.yaml"


def load(text: str | bytes, source: str) -> Policy:
    """Read a policy document; `source` names it in messages, bytes are UTF-8.

    Raises `PolicyErrors` with every mistake, each with line, column, path and remedy.
    """
    tree = read_tree(text if isinstance(text, str) else _decoded(text, source), source)
    if tree.value is None and tree.mistakes:
        raise PolicyErrors(tree.mistakes)
    policy, mistakes = check_shape(tree)
    mistakes += [*tree.mistakes, *_contradictions(tree, policy)]
    if policy is None or mistakes:
        raise PolicyErrors(mistakes)
    return policy


def default_text() -> str:
    """The shipped policy file, comments and all."""
    return resources.files("policies").joinpath(DEFAULT).read_text(encoding="utf-8")


def default_policy() -> Policy:
    """The shipped policy."""
    return load(default_text(), DEFAULT)


def _decoded(text: bytes, source: str) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        before = text[: problem.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        what, remedy = "not UTF-8 text from here on", "save the file as UTF-8"
        raise PolicyErrors([Mistake(source, line, column, "", what, remedy)]) from problem


def _contradictions(tree: Tree, policy: Policy | None) -> Iterator[Mistake]:
    rest = salvage(tree.value)
    for complaint in _complaints(policy or rest.policy, rest.broken):
        yield tree.mistake(rest.written(complaint.path), complaint.what, complaint.remedy)


def _complaints(policy: Policy, broken: tuple[Path, ...]) -> Iterator[Complaint]:
    for name, terms in policy.faults.items():
        for fault_rule in FAULT_RULES:
            if not _touched(broken, *(f"faults.{name}.{each}" for each in fault_rule.needs)):
                yield from fault_rule.check(name, terms)
    for rule in POLICY_RULES:
        if not _touched(broken, *rule.needs):
            yield from rule.check(policy)


def _touched(broken: tuple[Path, ...], *needs: str) -> bool:
    """Whether something needed, a part of it, or what holds it, is broken."""
    return any(_meets(path, need.split(".")) for path in broken for need in needs)


def _meets(path: Path, need: list[str]) -> bool:
    return all(fnmatchcase(str(step), word) for step, word in zip(path, need, strict=False))
