"""What the scripted model has done so far, read from the calls and results it is sent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runner.demo.conversation import Conversation, Role, Step
from runner.demo.kernels import Kernel
from runner.protocol import Outcome

KERNEL_FILE = "kernel.py"
SKILL_FILE = "SKILL.md"

_UNCOUNTED_LIMIT = 2


@dataclass(frozen=True)
class Measured:
    """One submission and its verdict. `outcome` is None when the answer could not be read.

    Times are in ms and None unless the kernel passed; `n_remaining` is None when not told.
    """

    strategy: str
    outcome: Outcome | None
    kernel_ms: float | None = None
    eager_ms: float | None = None
    n_remaining: int | None = None

    @property
    def passed(self) -> bool:
        """Whether the kernel passed and was timed."""
        return self.speedup is not None

    @property
    def speedup(self) -> float | None:
        """Eager time over kernel time; None when the kernel did not pass."""
        if self.outcome is not Outcome.PASSED or not self.kernel_ms or not self.eager_ms:
            return None
        return self.eager_ms / self.kernel_ms


@dataclass(frozen=True)
class Progress:
    """The state of an attempt. `written` is the strategy that kernel.py holds, None if not ours."""

    has_looked: bool = False
    written: str | None = None
    measured: tuple[Measured, ...] = ()
    n_uncounted: int = 0
    has_skill: bool = False
    has_finished: bool = False
    is_hurried: bool = False

    @property
    def tried(self) -> tuple[str, ...]:
        """The strategies that were submitted, in order."""
        return tuple(item.strategy for item in self.measured)

    @property
    def best(self) -> Measured | None:
        """The fastest submission that passed, None when none did."""
        return fastest(self.measured)


def fastest(measured: Sequence[Measured]) -> Measured | None:
    """Return the submission with the highest speed-up, the first of equals; None if none passed."""
    passing = [item for item in measured if item.passed]
    return max(passing, key=lambda item: item.speedup or 0.0, default=None)


def time_text(ms: float | None) -> str:
    """Write a time with its unit and enough digits for a kernel of a few microseconds."""
    return "unknown time" if ms is None else f"{ms:.{4 if ms >= 1 else 6}f} ms"


def read_progress(conversation: Conversation, kernels: Mapping[str, Kernel]) -> Progress:
    """Fold the conversation's calls and results into the state of the attempt.

    A user turn after the first is a warning that the budget ends, so the attempt is hurried.
    """
    n_told = sum(turn.role is Role.USER for turn in conversation.turns)
    progress = Progress(is_hurried=n_told > 1)
    strategies = {kernel.text.strip(): name for name, kernel in kernels.items()}
    for step in conversation.steps:
        progress = _after(progress, step, strategies)
    return progress


def _after(progress: Progress, step: Step, strategies: Mapping[str, str]) -> Progress:
    match step.call.name:
        case "run_shell":
            return replace(progress, has_looked=True)
        case "finish":
            return replace(progress, has_finished=True)
        case "write_file" if step.call.arguments.get("path") == SKILL_FILE:
            return replace(progress, has_skill=True)
        case "write_file" if step.call.arguments.get("path") == KERNEL_FILE:
            content = str(step.call.arguments.get("content", ""))
            return replace(progress, written=strategies.get(content.strip()))
        case "submit" if progress.written is not None:
            return _after_submit(progress, _read_verdict(progress.written, step.result))
        case _:
            return progress


def _after_submit(progress: Progress, verdict: Measured) -> Progress:
    """Keep the verdict; one that cost no submission is asked for again, but not for ever."""
    counted = verdict.outcome is None or verdict.outcome.counts_as_submission
    if not counted and progress.n_uncounted < _UNCOUNTED_LIMIT:
        return replace(progress, n_uncounted=progress.n_uncounted + 1)
    return replace(progress, measured=(*progress.measured, verdict))


def _read_verdict(strategy: str, result: str) -> Measured:
    try:
        answer = json.loads(result)
        outcome = Outcome(answer["outcome"])
    except (ValueError, KeyError, TypeError):
        return Measured(strategy, None)
    remaining = answer.get("remaining")
    return Measured(
        strategy,
        outcome,
        kernel_ms=_positive(answer.get("kernel_ms")),
        eager_ms=_positive(answer.get("eager_ms")),
        n_remaining=remaining if isinstance(remaining, int) else None,
    )


def _positive(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None
