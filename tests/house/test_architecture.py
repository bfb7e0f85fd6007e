"""What ruff and the import contracts cannot see: sizes, names, borders."""

import ast
import re
import subprocess
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "activities",
    "console",
    "fleet",
    "intake",
    "policies",
    "probes",
    "simulator",
    "workflows",
)
MODULES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
LONGEST_MODULE = 400
LONGEST_FUNCTION = 70
BROAD_EXCEPTS = 5
"""`except Exception` belongs to the few borders where anything may come back."""


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    return [ROOT / name for name in listed.stdout.decode().splitlines() if (ROOT / name).is_file()]


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_holds_one_idea_that_fits_a_reader(path):
    assert len(path.read_text().splitlines()) <= LONGEST_MODULE
    for function in functions(path):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        assert length <= LONGEST_FUNCTION, f"{path.name}:{function.name} has {length} lines"


def test_half_of_the_modules_are_shorter_than_150_lines():
    lengths = sorted(len(path.read_text().splitlines()) for path in MODULES)
    assert lengths[len(lengths) // 2] <= 150


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_why_it_exists(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_no_room_is_named_after_nothing():
    banned = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}
    assert not [
        path for path in MODULES if banned & set(path.relative_to(ROOT).with_suffix("").parts)
    ]


def test_nothing_imports_the_composition_root():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert "worker" not in [alias.name for alias in node.names], path
            if isinstance(node, ast.ImportFrom):
                assert node.module != "worker", path


def test_anything_is_caught_only_at_a_few_borders():
    broad = re.compile(r"except (BaseException|Exception)\b|except:")
    found = [path for path in MODULES for _ in broad.findall(path.read_text())]
    assert len(found) <= BROAD_EXCEPTS, found


def test_no_file_carries_a_path_of_a_machine():
    home = re.compile(r"/work/|/home/[a-z]|/root/|/tmp/[a-z]")
    allowed = {"uv.lock", "test_architecture.py"}
    for path in tracked_files():
        if path.name in allowed or path.suffix in {".png", ".so"}:
            continue
        assert not home.search(path.read_text(errors="replace")), path.relative_to(ROOT)


def test_no_other_distribution_owns_our_top_level_names():
    owners = packages_distributions()
    for name in (*PACKAGES, "worker"):
        assert set(owners.get(name, ["gpumend"])) == {"gpumend"}, name
