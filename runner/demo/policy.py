"""The scripted policy: from a conversation to the next move, by fixed rules and nothing else.

It keeps no state, reads no clock and knows no result but those in the conversation. Alone, it
submits its first strategy, and one more if that failed or was slower than eager. With a skill
it starts from what the skill measured as fastest, trusts it if it passes, and leaves out what
the skill saw fail. Either way it keeps the fastest kernel that passed.
"""

import re
from collections.abc import Mapping
from typing import Any

from runner.demo.assignment import Assignment
from runner.demo.conversation import Call, Conversation, JsonObject, Move, Role, Tool
from runner.demo.kernels import Kernel, Shelf
from runner.demo.plans import SoloPlan, solo_plan
from runner.demo.progress import (
    KERNEL_FILE,
    SKILL_FILE,
    Progress,
    read_progress,
    time_text,
)
from runner.demo.skill_text import Advice, read_skill, write_skill

PATIENCE = 2

_SIMPLEST: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}

_PACKAGED_SHELF = Shelf()


def next_move(conversation: Conversation, shelf: Shelf = _PACKAGED_SHELF) -> Move:
    """Return the next move; it always comes to a `finish` call, then to a plain text."""
    assignment = Assignment.find(conversation)
    if assignment is None:
        return _generic_move(conversation)
    kernels = shelf.kernels(assignment.number, assignment.dsl)
    progress = read_progress(conversation, kernels)
    if progress.has_finished:
        return Move("Scripted demo: the attempt is finished.")
    if not kernels:
        return _finish(
            f"Scripted demo: I have no kernel for {assignment.slug} in {assignment.dsl.label}, so I"
            " finish without one."
        )
    return _Attempt(assignment, kernels, progress).move()


class _Attempt:
    """One reading of an attempt: the assignment, the kernels at hand, and how far it has come."""

    def __init__(
        self, assignment: Assignment, kernels: Mapping[str, Kernel], progress: Progress
    ) -> None:
        self._assignment = assignment
        self._kernels = kernels
        self._progress = progress
        self._plan: SoloPlan = solo_plan(assignment.number, assignment.dsl)
        self._advice = read_skill(assignment.skill) if assignment.skill else Advice()

    def move(self) -> Move:
        """Look, write, submit, react; then hand on the skill, keep the best kernel, finish."""
        progress = self._progress
        if not progress.has_looked:
            look = Call("run_shell", {"command": "head -n 40 cheatsheet.md"})
            return Move(f"Scripted demo: {self._opening()} First a look at the notes.", (look,))
        if progress.written is not None and progress.written not in progress.tried:
            return Move(f"Scripted demo: submitting {progress.written}.", (Call("submit"),))
        strategy = self._next_strategy()
        if strategy is not None:
            kernel = self._kernels[strategy]
            text = f"Scripted demo: {self._reaction()}writing {strategy}: {kernel.summary}"
            return Move(text, (_write(KERNEL_FILE, kernel.text),))
        return self._wrap_up()

    def _order(self) -> list[str]:
        """Return the strategies at hand, the advised one first and those seen failing left out."""
        best, failed = self._advice.best, self._advice.failed
        wanted = [*([best] if best else []), *self._plan.order, *sorted(self._kernels)]
        known = [name for name in dict.fromkeys(wanted) if name in self._kernels]
        return [name for name in known if name == best or name not in failed] or known

    def _next_strategy(self) -> str | None:
        measured = self._progress.measured
        left = [name for name in self._order() if name not in self._progress.tried]
        if not measured:
            return left[0] if left else None
        last = measured[-1]
        is_spent = len(measured) >= PATIENCE or last.outcome is None or last.n_remaining == 0
        if is_spent or self._progress.is_hurried or not left:
            return None
        is_trusted = last.strategy == self._advice.best
        if last.speedup is not None and (is_trusted or last.speedup >= 1):
            return None
        return left[0]

    def _wrap_up(self) -> Move:
        progress, best = self._progress, self._progress.best
        writes = []
        if not progress.has_skill and not self._silence():
            text = write_skill(self._assignment, progress.measured, self._kernels)
            writes.append(_write(SKILL_FILE, text))
        if best is not None and progress.written != best.strategy:
            writes.append(_write(KERNEL_FILE, self._kernels[best.strategy].text))
        if writes:
            names = " and ".join(call.arguments["path"] for call in writes)
            return Move(f"Scripted demo: {self._reaction()}writing {names}.", tuple(writes))
        return _finish(f"Scripted demo: {self._closing()}")

    def _opening(self) -> str:
        if self._assignment.skill is None:
            return f"I start with {self._order()[0]}, for {self._plan.reason}."
        if self._advice.best in self._kernels:
            return f"The skill measured {self._advice.best} as fastest, so I start from it."
        if self._advice.failed:
            return f"The skill saw {' and '.join(self._advice.failed)} fail, so I leave that out."
        return "The skill measures nothing that I know, so I work as if alone."

    def _reaction(self) -> str:
        """Say what the last verdict was; empty before the first."""
        if not self._progress.measured:
            return ""
        last = self._progress.measured[-1]
        if last.speedup is None:
            return f"{last.strategy} failed ({last.outcome or 'unreadable answer'}); "
        return f"{last.strategy} passed at {last.speedup:.2f} times eager's speed; "

    def _silence(self) -> str:
        """Why no skill is handed on: the plan's reason; empty when one is."""
        return self._plan.silence if self._assignment.skill is None else ""

    def _closing(self) -> str:
        best = self._progress.best
        kept = (
            f"kernel.py holds {best.strategy}, {time_text(best.kernel_ms)}, the best that passed."
            if best
            else "nothing passed, so kernel.py holds what I tried last."
        )
        silence = self._silence()
        return f"{kept} I write no SKILL.md: {silence}" if silence else kept


def _generic_move(conversation: Conversation) -> Move:
    """Answer a prompt that poses no problem: call the first tool offered, once, or talk."""
    last = conversation.turns[-1]
    if conversation.tools and last.role is not Role.TOOL:
        tool = conversation.tools[0]
        call = Call(tool.name, _arguments(tool, last.text))
        return Move(f"Scripted demo: calling {tool.name}, the tool you offer.", (call,))
    return Move("This is a scripted demo model: it follows fixed rules and thinks nothing.")


def _arguments(tool: Tool, prompt: str) -> JsonObject:
    """Fill a tool's required arguments; texts are what the prompt quotes, in turn."""
    quoted = [text for _, text in re.findall(r"""(["'`])(.+?)\1""", prompt)]
    properties = tool.parameters.get("properties") or {}
    filled: JsonObject = {}
    for name in tool.parameters.get("required") or []:
        schema = properties.get(name) or {}
        kind = schema.get("type")
        if schema.get("enum"):
            filled[name] = schema["enum"][0]
        elif kind in _SIMPLEST:
            filled[name] = _SIMPLEST[kind]
        else:
            filled[name] = quoted.pop(0) if quoted else "scripted"
    return filled


def _finish(text: str) -> Move:
    return Move(text, (Call("finish"),))


def _write(path: str, content: str) -> Call:
    return Call("write_file", {"path": path, "content": content})
