"""The dotted names that a Python text uses, and whether their lines certainly run."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# What names or runs code that reading cannot follow.
DYNAMIC = ("exec", "eval", "compile", "__import__", "importlib")


@dataclass(frozen=True)
class Use:
    """A dotted name as the kernel uses it; `certain` when the line runs on import."""

    name: str
    line: int
    certain: bool


def uses_of(tree: ast.Module) -> Iterator[Use]:
    """Yield every import and every dotted name that begins with an imported or built-in one."""
    aliases = aliases_of(tree)
    deferred = _deferred(tree)
    # Of a.b.c only the whole chain counts, not the a and the a.b inside it.
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        certain = id(node) not in deferred
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Use(alias.name, node.lineno, certain)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield Use(f"{node.module}.{alias.name}", node.lineno, certain)
        elif (
            isinstance(node, ast.Name | ast.Attribute)
            and id(node) not in inner
            and (dotted := _dotted(node))
        ):
            first, _, rest = dotted.partition(".")
            if first in aliases:
                name = f"{aliases[first]}.{rest}" if rest else aliases[first]
                yield Use(name, node.lineno, certain)
            elif dotted in DYNAMIC:
                yield Use(dotted, node.lineno, certain)


def aliases_of(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for, wherever in the text it was imported."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole, first = alias.name, alias.name.partition(".")[0]
                aliases[alias.asname or first] = whole if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return aliases


def _deferred(tree: ast.Module) -> set[int]:
    """Return the nodes that may never run: bodies of functions, and branches of if and try."""
    found: set[int] = set()
    for node in ast.walk(tree):
        bodies: list[ast.AST] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            bodies = [*node.body]
        elif isinstance(node, ast.Lambda):
            bodies = [node.body]
        elif isinstance(node, ast.If):
            bodies = [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            bodies = [*node.handlers, *node.orelse]
        for body in bodies:
            found.update(id(inner) for inner in ast.walk(body))
    return found


def _dotted(node: ast.AST) -> str | None:
    """Return "a.b.c" for a chain of names, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := _dotted(node.value)):
        return f"{base}.{node.attr}"
    return None
