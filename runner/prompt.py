"""The instruction of an attempt, filled in from its order, and the files that go with it."""

import ast
from pathlib import Path
from string import Template

from problems import catalog
from problems.catalog import Problem
from runner.dsl import cheatsheet
from runner.messages import AttemptOrder
from runner.protocol import GRADING_LIMIT_SEC, KERNEL_LIMIT_BYTES, SKILL_LIMIT_BYTES, Dsl

_PROMPTS = Path(__file__).parent / "prompts"
_PACKAGES = {Dsl.CUTEDSL: "cutlass", Dsl.TIRX: "tvm"}


def instruction(order: AttemptOrder, problem: Problem, *, skill_block: str | None) -> str:
    """Return the whole instruction, with the delimited skill when the arm receives one."""
    dsl = order.arm.dsl
    return _filled(
        "instruction.md",
        problem=problem.slug,
        title=problem.title,
        dsl=dsl.value,
        dsl_title=dsl.label,
        package=_PACKAGES[dsl],
        device=order.device,
        workload=order.workload,
        kernel_limit=f"{KERNEL_LIMIT_BYTES:,}",
        skill_limit=f"{SKILL_LIMIT_BYTES:,}",
        grading_limit=str(GRADING_LIMIT_SEC),
        submission_limit=str(order.submission_limit),
        budget=spelled(order.budget_sec),
        no_gpu="" if order.device == "cpu" else " and no GPU",
        skill_part=_skill_part(order, skill_block),
    )


def folder_files(problem: Problem, dsl: Dsl, *, task: str) -> dict[str, str]:
    """Return what the attempt's folder holds at the start, text by relative path.

    `task` is the instruction.
    `reference.py` imports what the problem's module imports, so those files come along.
    """
    own, *shared = catalog.sources(problem).items()
    files = {
        "TASK.md": task,
        "reference.py": without_heldout(own[1]),
        "cheatsheet.md": cheatsheet(dsl),
    }
    for path, text in shared:
        files[path] = text
        for package in list(Path(path).parents)[:-1]:
            files.setdefault(f"{package}/__init__.py", "")
    return files


def without_heldout(source: str) -> str:
    """Return a problem's text without its held-out workloads, which no attempt may see.

    Only whole lines are dropped, so an entry that shares its line with another one stays.
    """
    lines = source.splitlines(keepends=True)
    dropped: set[int] = set()
    kept: set[int] = set()
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.Dict):
            waiting += ast.iter_child_nodes(node)
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            span = _span(key or value, value)
            if isinstance(key, ast.Constant) and str(key.value).startswith("heldout"):
                # Nothing inside is looked at: it goes as a whole.
                dropped |= span
            else:
                kept |= span
                waiting.append(value)
    dropped -= kept
    return "".join(line for number, line in enumerate(lines, 1) if number not in dropped)


def _span(first: ast.expr, last: ast.expr) -> set[int]:
    return set(range(first.lineno, (last.end_lineno or last.lineno) + 1))


def spelled(seconds: float) -> str:
    """Return a length of time in words: "40 minutes", "90 seconds"."""
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds:.0f} seconds"


def _skill_part(order: AttemptOrder, skill_block: str | None) -> str:
    if order.arm.direction is None or skill_block is None:
        return ""
    return _filled(
        "skill_header.md",
        source_title=order.arm.direction.source.label,
        dsl_title=order.arm.dsl.label,
        skill=skill_block,
    )


def _filled(name: str, **values: str) -> str:
    text = (_PROMPTS / name).read_text(encoding="utf-8")
    return Template(text).substitute(values)
