"""The catalogue: which problems exist, read from their files without running them."""

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

FOLDER = Path(__file__).parent

_FILE_NAME = re.compile(r"p((\d{2})_[a-z0-9_]+)\.py")


@dataclass(frozen=True)
class Problem:
    """A row of the catalogue.

    `slug` starts with the number; `module` is the dotted name to import; `fingerprint` is the
    SHA-256 of what the module and the shared modules it imports compute, in hexadecimal:
    comments, docstrings and layout do not enter it.
    """

    number: int
    slug: str
    family: str
    title: str
    source: str
    module: str
    fingerprint: str


@cache
def all_problems(folder: Path = FOLDER) -> tuple[Problem, ...]:
    """Return every problem below `folder`, by number; read once per process.

    Raises:
        ValueError: two files share a number, or one has no title line or no SOURCE.
    """
    problems = sorted(_read_all(folder), key=lambda problem: problem.number)
    for first, second in pairwise(problems):
        if first.number == second.number:
            raise ValueError(
                f"{first.slug} and {second.slug} share number {first.number}; renumber one"
            )
    return tuple(problems)


def find(text: str, *, folder: Path = FOLDER) -> Problem:
    """Return the problem named by a number ("2", "02", "p02") or a slug.

    Raises:
        LookupError: no problem has that name; the message lists those that exist.
    """
    wanted = text.strip().lower()
    number = re.fullmatch(r"p?(\d{1,2})", wanted)
    for problem in all_problems(folder):
        if wanted in (problem.slug, f"p{problem.slug}"):
            return problem
        if number and problem.number == int(number[1]):
            return problem
    existing = ", ".join(problem.slug for problem in all_problems(folder))
    raise LookupError(f"no problem is called {text!r}; there are: {existing}")


def path(problem: Problem, *, folder: Path = FOLDER) -> Path:
    """Return the file that defines the problem."""
    return folder / problem.family / f"p{problem.slug}.py"


def source_text(problem: Problem, *, folder: Path = FOLDER) -> str:
    """Return the text of the file that defines the problem."""
    return path(problem, folder=folder).read_text(encoding="utf-8")


def sources(problem: Problem, *, folder: Path = FOLDER) -> dict[str, str]:
    """Return all files that define the problem, text by path below the packages' folder.

    The problem's own file comes first, then the shared ones it imports.
    """
    files = _closure(path(problem, folder=folder), folder)
    return {
        file.relative_to(folder.parent).as_posix(): file.read_text(encoding="utf-8")
        for file in files
    }


def workloads(problem: Problem, *, folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the names of the problem's workloads, in the order written.

    Raises:
        ValueError: the module has no WORKLOADS written as a dictionary with literal names.
    """
    value = _assigned(ast.parse(source_text(problem, folder=folder)), "WORKLOADS")
    if not isinstance(value, ast.Dict):
        raise ValueError(f"{problem.slug} has no WORKLOADS; write them as one dictionary literal")
    return tuple(ast.literal_eval(key) for key in value.keys if key is not None)


def _read_all(folder: Path) -> Iterator[Problem]:
    for file in folder.glob("*/p*.py"):
        if found := _FILE_NAME.fullmatch(file.name):
            yield _read(file, folder, slug=found[1], number=int(found[2]))


def _read(file: Path, folder: Path, *, slug: str, number: int) -> Problem:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    title = (ast.get_docstring(tree) or "").partition("\n")[0].strip().rstrip(".")
    source = _assigned(tree, "SOURCE")
    if not title or source is None:
        raise ValueError(f"{file.name} lacks a title line or SOURCE; a problem opens with both")
    family = file.parent.name
    return Problem(
        number=number,
        slug=slug,
        family=family,
        title=title,
        source=ast.literal_eval(source),
        module=f"{folder.name}.{family}.p{slug}",
        fingerprint=_fingerprint(file, folder),
    )


def _assigned(tree: ast.Module, name: str) -> ast.expr | None:
    """Return the expression that the module assigns to `name` at its top level."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.value  # type: ignore[attr-defined, no-any-return]
    return None


def _fingerprint(file: Path, folder: Path) -> str:
    digest = hashlib.sha256()
    for part in _closure(file, folder):
        tree = ast.parse(part.read_text(encoding="utf-8"))
        name = part.relative_to(folder).as_posix()
        digest.update(f"{name}\n{_canonical(tree)}\n".encode())
    return digest.hexdigest()


def _closure(file: Path, folder: Path) -> list[Path]:
    """Return the file, then the modules of `folder` it imports, directly or not, by name."""
    seen = {file}
    waiting = [file]
    while waiting:
        tree = ast.parse(waiting.pop().read_text(encoding="utf-8"))
        found = {module for name in _imports(tree) for module in _files_of(name, folder)}
        waiting.extend(found - seen)
        seen |= found
    return [file, *sorted(seen - {file})]


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            # What follows "import" may itself be a module.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files_of(name: str, folder: Path) -> Iterator[Path]:
    package, _, rest = name.partition(".")
    if package == folder.name and rest:
        target = folder.joinpath(*rest.split(".")).with_suffix(".py")
        if target.is_file():
            yield target


def _canonical(node: object) -> str:
    """Write a syntax tree without positions, docstrings and absent fields.

    Not `ast.dump`: its text differs between Python versions, and hosts may differ in theirs.
    """
    if isinstance(node, list):
        return "[" + ",".join(map(_canonical, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    written = [
        f"{name}={_canonical(value)}"
        for name, value in ast.iter_fields(_without_docstring(node))
        if value is not None and value != []
    ]
    return f"{type(node).__name__}({','.join(written)})"


def _without_docstring(node: ast.AST) -> ast.AST:
    documented = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]
    return node
