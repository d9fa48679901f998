"""The agent loop: instruction, turns and tools until something ends it, then the final grading."""

import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from problems import catalog
from runner import prompt, sandbox, skill
from runner.attempt.budget import Budget
from runner.attempt.diary import Diary
from runner.attempt.submissions import Submissions
from runner.attempt.toolbox import TOOLS, Toolbox, cores_for
from runner.attempt.usage import UsageTotal
from runner.attempt.workspace import Workspace
from runner.dsl import versions
from runner.endpoint import (
    Assistant,
    ChatMessage,
    ChatModel,
    EndpointError,
    Kind,
    Reply,
    ToolResult,
    User,
)
from runner.judge import Judge, grade_patiently
from runner.messages import AttemptEvent, AttemptOrder, AttemptReport, JsonObject, Usage, Verdict
from runner.protocol import (
    KERNEL_LIMIT_BYTES,
    SKILL_LIMIT_BYTES,
    EndReason,
    Outcome,
)

MAX_TURNS = 200
TOOL_CALLS_PER_TURN = 16

REMINDER = (
    "You called no tool. Go on with run_shell, write_file or submit; call finish when kernel.py and"
    " SKILL.md are as you want them. A second turn without a tool call ends the attempt."
)


class OrderRefusedError(Exception):
    """An order that this host cannot carry out as meant, through no fault of the model."""


@dataclass(frozen=True)
class _End:
    """Why the conversation is over, in a word and in a sentence."""

    reason: EndReason
    detail: str


def run_attempt(
    order: AttemptOrder,
    *,
    model: ChatModel,
    judge: Judge,
    tell: Callable[[AttemptEvent], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> AttemptReport:
    """Make one attempt and return how it ended, with what it left behind.

    Args:
        order: which variant, under which condition, with which budgets.
        model: whose attempt it is.
        judge: grades submissions, and the final kernel.
        tell: takes events as they happen.
        clock: counts seconds.
        sleep: pauses between tries of a grading host that fails.

    Raises:
        OrderRefusedError: the problem or the skill is not the one that the order means.
    """
    problem = _checked(order)
    skill_block = None if order.skill is None else skill.attach(order.skill)
    task = prompt.instruction(order, problem, skill_block=skill_block)
    budget = Budget(order.budget_sec, clock)
    diary = Diary(order, budget, tell)
    with tempfile.TemporaryDirectory(prefix="attempt-", ignore_cleanup_errors=True) as folder:
        workspace = Workspace(Path(folder))
        workspace.fill(prompt.folder_files(problem, order.arm.dsl, task=task))
        submissions = Submissions(
            workspace, judge, diary, limit=order.submission_limit, sleep=sleep
        )
        toolbox = Toolbox(workspace, submissions, budget, cores=cores_for(order.trial_id))
        conversation = _Conversation(model, toolbox, budget, diary)
        end = conversation.hold(task)
        usage = conversation.usage.total(wall_sec=budget.elapsed_sec)
        return _Ending(order, workspace, judge, diary, sleep).report(end, usage)


class _Conversation:
    """The turns of one attempt."""

    def __init__(self, model: ChatModel, toolbox: Toolbox, budget: Budget, diary: Diary) -> None:
        self._model = model
        self._toolbox = toolbox
        self._budget = budget
        self._diary = diary
        self._history: list[ChatMessage] = []
        self._n_silent = 0
        self.usage = UsageTotal()

    def hold(self, instruction: str) -> _End:
        """Take turns until the attempt ends."""
        self._say(instruction)
        for _ in range(MAX_TURNS):
            if self._budget.is_over:
                return _End(EndReason.OUT_OF_TIME, "the wall clock ran out")
            if warning := self._budget.warning():
                self._say(warning)
            try:
                reply = self._model.chat(self._history, TOOLS, timeout_sec=self._budget.left_sec)
            except EndpointError as error:
                return self._failed(error)
            if end := self._take(reply):
                return end
        return _End(EndReason.OUT_OF_TURNS, f"{MAX_TURNS} turns were taken")

    def _say(self, text: str) -> None:
        self._history.append(User(text))
        self._diary.turn("user", text)

    def _take(self, reply: Reply) -> _End | None:
        """Act on one turn of the model; return the end when it is one."""
        self.usage.add(reply.usage)
        self._history.append(Assistant(reply.text, reply.tool_calls))
        self._diary.turn("assistant", reply.text, tool_calls=reply.tool_calls, usage=reply.usage)
        if not reply.tool_calls:
            self._n_silent += 1
            if self._n_silent > 1:
                return _End(EndReason.STOPPED_CALLING_TOOLS, "two turns in a row called no tool")
            self._say(REMINDER)
            return None
        self._n_silent = 0
        for number, call in enumerate(reply.tool_calls):
            if number >= TOOL_CALLS_PER_TURN or self._toolbox.wants_to_finish:
                result = "Not run: too many calls in one turn, or the attempt is finished."
            elif self._budget.is_over:
                return _End(EndReason.OUT_OF_TIME, "the wall clock ran out")
            else:
                result = self._toolbox.call(call)
            self._history.append(ToolResult(call.call_id, result))
            self._diary.turn("tool", result)
        if self._toolbox.wants_to_finish:
            return _End(EndReason.FINISHED, "the model called finish")
        return None

    def _failed(self, error: EndpointError) -> _End:
        """Say whose fault a missing answer is."""
        self._diary.note(f"No answer: {error.sentence}.")
        if error.kind is Kind.TIMED_OUT and self._budget.left_sec < 1:
            return _End(EndReason.OUT_OF_TIME, "the wall clock ran out during a turn")
        if self.usage.n_turns == 0 and error.kind.is_transient:
            return _End(EndReason.INFRASTRUCTURE, f"the model never answered: {error.sentence}")
        return _End(EndReason.ENDPOINT_REFUSED, error.sentence)


@dataclass(frozen=True)
class _Ending:
    """What is collected and graded when the conversation is over."""

    order: AttemptOrder
    workspace: Workspace
    judge: Judge
    diary: Diary
    sleep: Callable[[float], None]

    def report(self, end: _End, usage: Usage) -> AttemptReport:
        """Collect both files, grade the kernel afresh, and say how it all ended."""
        kernel = self.workspace.read("kernel.py", limit_bytes=KERNEL_LIMIT_BYTES)
        notes = self.workspace.read("SKILL.md", limit_bytes=SKILL_LIMIT_BYTES)
        if notes.text is None:
            self.diary.note(f"No skill was collected: {notes.fault}.")
        verdict: Verdict | None = None
        if end.reason is not EndReason.INFRASTRUCTURE:
            if kernel.text is None:
                verdict = self._refused(kernel.fault)
            else:
                verdict = grade_patiently(self.judge, kernel.text, sleep=self.sleep)
        if verdict is not None and verdict.outcome is Outcome.INFRASTRUCTURE:
            end = _End(EndReason.INFRASTRUCTURE, f"the kernel was not graded: {verdict.message}")
            verdict = None
        return AttemptReport(
            trial_id=self.order.trial_id,
            lease_token=self.order.lease_token,
            end_reason=end.reason,
            detail=end.detail,
            kernel=kernel.text,
            skill=skill.read(notes.text),
            verdict=verdict,
            usage=usage,
            environment=environment(),
        )

    def _refused(self, fault: str) -> Verdict:
        return Verdict(
            outcome=Outcome.REFUSED,
            stage="reading",
            message=f"{fault}, so there is nothing to grade",
            problem=self.order.problem,
            dsl=self.order.arm.dsl.value,
            device=self.order.device,
            workload=self.order.workload,
        )


def environment() -> JsonObject:
    """Return what an attempt ran on: interpreter, packages and the level of its sandbox."""
    return {
        "python": platform.python_version(),
        "openai": versions.version_of("openai"),
        "anthropic": versions.version_of("anthropic"),
        **asdict(versions.installed()),
        "sandbox": sandbox.level().value,
    }


def _checked(order: AttemptOrder) -> catalog.Problem:
    try:
        problem = catalog.find(order.problem)
    except LookupError as error:
        raise OrderRefusedError(f"this host does not know the problem: {error}") from error
    if problem.fingerprint != order.problem_fingerprint:
        raise OrderRefusedError(
            f"{problem.slug} differs between this host and the ledger; update the host, or run"
            " sync_problems"
        )
    if (order.arm.direction is None) != (order.skill is None):
        raise OrderRefusedError(f"arm {order.arm} and the skill of its order do not go together")
    if order.skill is not None and skill.digest(order.skill) != order.skill_digest:
        raise OrderRefusedError(
            "the skill is not the one that its digest names; send the order again"
        )
    return problem
