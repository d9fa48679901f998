"""A problem is torch, math and the library's own shared modules, nothing else."""

import ast
from pathlib import Path

import pytest

from problems import catalog

LIBRARY = sorted(catalog.FOLDER.rglob("*.py"))
ALLOWED = {"torch", "math", "problems"}
# Types and plain containers; nothing here computes.
PLAIN = {"dataclasses", "typing", "collections", "itertools"}


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name} imports relatively"
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize(
    "file", [file for file in LIBRARY if file.name != "catalog.py"], ids=lambda file: file.stem
)
def test_a_problem_computes_with_torch_and_math_alone(file: Path) -> None:
    assert imported(file) <= ALLOWED | PLAIN


def test_the_catalogue_imports_no_problem() -> None:
    assert not imported(catalog.FOLDER / "catalog.py") & ALLOWED
