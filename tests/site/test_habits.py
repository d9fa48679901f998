"""The habits of the code that no linter of ours checks."""

import ast
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
PACKAGES = ("mkb_site", "leaderboard", "runner", "problems")
# Kernels are material, not code of ours to keep short; migrations are written by a program.
LEFT_OUT = ("demo/kernels", "migrations")

MODULE_LIMIT_LINES = 250
FUNCTION_LIMIT_LINES = 40


MODULES = [
    path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if not any(part in path.as_posix() for part in LEFT_OUT)
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_its_duty_in_one_line_and_stays_short(path: Path) -> None:
    text = path.read_text()
    duty = ast.get_docstring(ast.parse(text)) or ""
    assert duty.partition("\n")[0].endswith((".", "?", "!")), "no opening sentence on one line"
    assert len(text.splitlines()) <= MODULE_LIMIT_LINES


def n_lines_of_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code: the signature and the docstring may take the room they need."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_function_stays_short(path: Path) -> None:
    lengths = {
        node.name: n_lines_of_body(node)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: n for name, n in lengths.items() if n > FUNCTION_LIMIT_LINES} == {}
