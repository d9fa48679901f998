"""A model and a judge that say what a test tells them to, passed through the attempt's doors."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from problems import catalog
from runner import skill
from runner.attempt import run_attempt
from runner.endpoint import (
    ChatMessage,
    EndpointError,
    Reply,
    Tool,
    ToolCall,
    ToolResult,
    TurnUsage,
    User,
)
from runner.messages import AttemptEvent, AttemptOrder, AttemptReport, Endpoint, Mismatch, Verdict
from runner.protocol import Arm, Outcome

PROBLEM = catalog.find("36")
Turn = Reply | EndpointError | Callable[[Sequence[ChatMessage]], Reply]


def reply(text: str = "", *calls: ToolCall, usage: TurnUsage | None = None) -> Reply:
    return Reply(text, calls, usage or TurnUsage(10, 4, 2), "stop")


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"id-{name}", name, json.dumps(arguments))


def write(path: str, content: str) -> ToolCall:
    return call("write_file", path=path, content=content)


@dataclass
class Clock:
    now_sec: float = 0.0

    def __call__(self) -> float:
        return self.now_sec


@dataclass
class ScriptedModel:
    """Gives its turns in order; each takes `turn_sec` on the clock."""

    turns: list[Turn]
    clock: Clock
    turn_sec: float = 1.0
    heard: list[list[ChatMessage]] = field(default_factory=list)
    tools: Sequence[Tool] = ()
    timeouts_sec: list[float | None] = field(default_factory=list)

    def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool],
        *,
        timeout_sec: float | None = None,
    ) -> Reply:
        self.heard.append(list(messages))
        self.tools = tools
        self.timeouts_sec.append(timeout_sec)
        self.clock.now_sec += self.turn_sec
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        if isinstance(turn, EndpointError):
            raise turn
        return turn(messages) if callable(turn) else turn

    @property
    def told(self) -> list[str]:
        """What the tools answered, up to the last turn asked for."""
        return [message.text for message in self.heard[-1] if isinstance(message, ToolResult)]

    @property
    def addressed(self) -> list[str]:
        """What we said to it, up to the last turn asked for."""
        return [message.text for message in self.heard[-1] if isinstance(message, User)]


def verdict(outcome: Outcome = Outcome.PASSED, **fields: Any) -> Verdict:
    times = {"kernel_ms": 2.0, "eager_ms": 3.0} if outcome is Outcome.PASSED else {}
    return Verdict(
        outcome=outcome,
        stage="timing",
        message=outcome.value,
        problem=PROBLEM.slug,
        dsl="tirx",
        device="cpu",
        workload="smoke",
        **{**times, **fields},
    )


@dataclass
class ScriptedJudge:
    """Gives its verdicts in order, the last one again and again; keeps the kernels it got."""

    verdicts: list[Verdict] = field(default_factory=lambda: [verdict()])
    kernels: list[str] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    grading_sec: float = 0.0

    def grade(self, kernel: str) -> Verdict:
        self.kernels.append(kernel)
        self.clock.now_sec += self.grading_sec
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]


def order(
    arm: Arm = Arm.SOLO_TIRX,
    *,
    budget_sec: float = 600.0,
    submission_limit: int = 3,
    skill_text: str | None = None,
    fingerprint: str = PROBLEM.fingerprint,
) -> AttemptOrder:
    return AttemptOrder(
        trial_id=5,
        lease_token="lease",
        problem=PROBLEM.slug,
        problem_fingerprint=fingerprint,
        arm=arm,
        device="cpu",
        workload="smoke",
        endpoint=Endpoint("openai", "https://vendor.example/v1", "m"),
        budget_sec=budget_sec,
        submission_limit=submission_limit,
        skill=skill_text,
        skill_digest=None if skill_text is None else skill.digest(skill_text),
    )


@dataclass
class Played:
    """An attempt that was made, with all that was seen of it."""

    report: AttemptReport
    model: ScriptedModel
    judge: ScriptedJudge
    events: list[AttemptEvent]
    pauses: list[float]

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        return [event.body for event in self.events if event.kind == kind]


def play(
    *turns: Turn,
    given: AttemptOrder | None = None,
    judge: ScriptedJudge | None = None,
    turn_sec: float = 1.0,
) -> Played:
    judge = judge or ScriptedJudge()
    clock = judge.clock
    model = ScriptedModel(list(turns), clock, turn_sec)
    events: list[AttemptEvent] = []
    pauses: list[float] = []
    report = run_attempt(
        given or order(),
        model=model,
        judge=judge,
        tell=events.append,
        clock=clock,
        sleep=pauses.append,
    )
    return Played(report, model, judge, events, pauses)


MISMATCH = Mismatch(path="[0]", reason="too far off", error=0.5, allowance=0.1, n_wrong=7)
