import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
ERRORS = "errors.py"


def glossary_types() -> set[str]:
    return set(re.findall(r"`([A-Z][A-Za-z]+)`", GLOSSARY.read_text()))


def fleet_types() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "fleet").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.add(node.name)
    return found


def test_every_type_of_the_fleet_is_in_the_glossary():
    assert fleet_types() - glossary_types() == set()


def test_the_glossary_names_no_type_that_is_gone():
    assert glossary_types() - fleet_types() == set()
