"""The skill that the scripted model hands on, and what it understands of one that it is given."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.demo.assignment import Assignment
from runner.demo.kernels import Kernel
from runner.demo.progress import Measured, fastest, time_text

_PASSED = re.compile(r"^- Submission \d+: (\w+) passed, .* ([\d.]+) times as fast as eager", re.M)
_FAILED = re.compile(r"^- Submission \d+: (\w+) failed", re.M)


@dataclass(frozen=True)
class Advice:
    """What a skill measured: the strategy it found fastest (None: none passed), those that failed.

    Strategies are named by the skill's words; the reader may know none of them.
    """

    best: str | None = None
    failed: tuple[str, ...] = ()


def write_skill(
    assignment: Assignment, measured: Sequence[Measured], kernels: Mapping[str, Kernel]
) -> str:
    """Return SKILL.md: every submission with its outcome and times, what follows, and where.

    It holds no code: strategies are described by the first line of their kernel's docstring.
    """
    names = dict.fromkeys(item.strategy for item in measured)
    parts = [
        f"# {assignment.slug}: what was measured in {assignment.dsl.label}",
        "Written by the scripted demo policy from its own graded submissions.",
        "## Strategies submitted",
        "\n".join(f"- {name}: {kernels[name].summary}" for name in names),
        "## Measurements",
        "\n".join(_line(number, item) for number, item in enumerate(measured, start=1)),
        "## What this shows",
        _conclusion(measured),
        "## Where it holds",
        f"Measured on device {assignment.device or 'unknown'} with workload"
        f" {assignment.workload or 'unknown'}, in {assignment.dsl.label} alone. {_scope(measured)}",
    ]
    return "\n\n".join(parts) + "\n"


def read_skill(text: str) -> Advice:
    """Return what a skill measured; a skill in other words than ours gives empty advice."""
    speedups = {name: float(times) for name, times in _PASSED.findall(text)}
    best = max(speedups, key=lambda name: speedups[name], default=None)
    return Advice(best, tuple(dict.fromkeys(_FAILED.findall(text))))


def _line(number: int, item: Measured) -> str:
    if item.speedup is None:
        why = item.outcome or "the answer could not be read"
        return f"- Submission {number}: {item.strategy} failed ({why}); it has no time."
    return (
        f"- Submission {number}: {item.strategy} passed, {time_text(item.kernel_ms)} against"
        f" {time_text(item.eager_ms)} for eager, {item.speedup:.3f} times as fast as eager."
    )


def _conclusion(measured: Sequence[Measured]) -> str:
    best = fastest(measured)
    if best is None:
        return "No submission passed: avoid what failed and start from another strategy."
    others = [item for item in measured if item is not best and item.passed]
    said = f"Start from {best.strategy}: it was the fastest of what was measured"
    if not others:
        return f"{said}, and the only one that passed. Nothing else was compared with it."
    return " ".join(
        [
            f"{said}.",
            *(f"It took {_share(best, item)} of {item.strategy}'s time." for item in others),
        ]
    )


def _share(best: Measured, other: Measured) -> str:
    return f"{100 * (best.kernel_ms or 0) / (other.kernel_ms or 1):.0f} %"


def _scope(measured: Sequence[Measured]) -> str:
    best = fastest(measured)
    if best is None or best.speedup is None:
        return "A failure in one DSL need not be a failure in another."
    if best.speedup < 1:
        return "Even the best was slower than eager, so a better strategy is likely to exist."
    if len(measured) == 1:
        return "One strategy was enough to beat eager, so the others were left unmeasured."
    return "The order held on these sizes; nothing is known about others."
