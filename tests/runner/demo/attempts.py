"""A plain agent loop around the policy: a shelf of three kernels, and verdicts as told."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.demo.conversation import Call, Conversation, Role, Turn
from runner.demo.kernels import Shelf
from runner.demo.policy import next_move
from runner.protocol import Dsl

STRATEGIES = ("mixed", "fused", "tuned")
SLUG = "98_made_up_problem"

Answer = Callable[[str], dict[str, Any] | str]


def make_shelf(folder: Path, *, number: int = 98, strategies: Sequence[str] = STRATEGIES) -> Shelf:
    """Write a shelf with these strategies in both DSLs; problem 98 has no plan but the default."""
    (folder / f"p{number:02d}").mkdir(parents=True)
    for dsl in Dsl:
        for strategy in strategies:
            text = f'"""The {strategy} way in {dsl}."""\n\n\ndef solve(x):\n    return x\n'
            (folder / f"p{number:02d}" / f"{dsl}_{strategy}.py").write_text(text)
    return Shelf(folder)


def instruction(*, slug: str = SLUG, dsl: Dsl = Dsl.TIRX, skill: str | None = None) -> str:
    """Return a first message as the agent loop words it."""
    lines = ["Write a kernel.", f"Problem: {slug}", f"DSL: {dsl}", "Device: cpu", "Workload: smoke"]
    if skill is not None:
        lines.append(f'<skill sha256="{"0" * 64}">\n{skill}\n</skill>')
    return "\n".join(lines)


def passed(speedup: float) -> dict[str, Any]:
    """Return feedback about a kernel that passed, against 2 ms for eager."""
    return {
        "submission": 1,
        "remaining": 9,
        "outcome": "passed",
        "message": "",
        "kernel_ms": 2 / speedup,
        "eager_ms": 2.0,
        "speedup": speedup,
        "mismatch": None,
    }


def failed(outcome: str = "wrong_values") -> dict[str, Any]:
    """Return feedback about a kernel that did not pass."""
    return {"submission": 1, "remaining": 9, "outcome": outcome, "kernel_ms": None}


@dataclass
class Attempt:
    """What came of an attempt: its files, what was submitted, what was said, how long it took."""

    files: dict[str, str] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    n_turns: int = 0
    is_finished: bool = False

    @property
    def kernel(self) -> str | None:
        """The strategy that kernel.py holds, None without the file."""
        return strategy_of(self.files["kernel.py"]) if "kernel.py" in self.files else None

    @property
    def skill(self) -> str | None:
        """The text of SKILL.md, None without the file."""
        return self.files.get("SKILL.md")


def strategy_of(text: str) -> str:
    """Return the strategy of a kernel from `make_shelf`, as its docstring says."""
    return text.split()[1]


def play(shelf: Shelf, told: str, answer: Answer, *, limit: int = 50) -> Attempt:
    """Run the policy against `answer`, which grades a strategy; stop at `finish` or the limit."""
    turns = [Turn(Role.SYSTEM, "You write kernels."), Turn(Role.USER, told)]
    attempt = Attempt(turns=turns)
    while not attempt.is_finished and attempt.n_turns < limit:
        move = next_move(Conversation(tuple(turns)), shelf).numbered("c", len(attempt.tools))
        attempt.n_turns += 1
        attempt.said.append(move.text)
        turns.append(Turn(Role.ASSISTANT, move.text, move.calls))
        if not move.calls:
            break
        turns += [_result(attempt, call, answer) for call in move.calls]
    return attempt


def _result(attempt: Attempt, call: Call, answer: Answer) -> Turn:
    attempt.tools.append(call.name)
    text = "done"
    match call.name:
        case "write_file":
            attempt.files[call.arguments["path"]] = call.arguments["content"]
        case "submit":
            strategy = strategy_of(attempt.files["kernel.py"])
            attempt.submitted.append(strategy)
            verdict = answer(strategy)
            text = verdict if isinstance(verdict, str) else json.dumps(verdict)
        case "finish":
            attempt.is_finished = True
    return Turn(Role.TOOL, text, answers=call.call_id)
