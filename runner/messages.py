"""What crosses between the rooms: orders out, events and reports home, as frozen dataclasses."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

from runner.protocol import Arm, EndReason, Outcome

JsonObject = dict[str, Any]


class Message:
    """A dataclass that travels as JSON; unknown and missing fields are refused by name."""

    def to_json(self) -> JsonObject:
        """Return the message as plain JSON types."""
        return _plain(asdict(self))  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_json(cls, payload: Mapping[str, Any]) -> Self:
        """Read a message.

        Raises:
            ValueError: a field is unknown, missing, or not what its type says.
        """
        known = {item.name for item in fields(cls)}  # type: ignore[arg-type]
        if unknown := set(payload) - known:
            raise ValueError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
        hints = get_type_hints(cls)
        try:
            return cls(**{name: _typed(hints[name], value) for name, value in payload.items()})
        except TypeError as error:
            raise ValueError(f"{cls.__name__} cannot be read: {error}") from error


def _plain(value: Any) -> Any:
    """Turn enums, tuples and nested mappings into JSON types."""
    return json.loads(json.dumps(value, allow_nan=False))


def _typed(kind: Any, value: Any) -> Any:
    """Build `kind` from a JSON value: a nested message, an enum, a tuple, or the value itself."""
    if get_origin(kind) in (Union, UnionType):
        if value is None:
            return None
        kind = next(option for option in get_args(kind) if option is not type(None))
    if get_origin(kind) is tuple:
        return tuple(_typed(get_args(kind)[0], item) for item in value)
    if is_dataclass(kind) and isinstance(kind, type) and issubclass(kind, Message):
        return kind.from_json(value)
    if isinstance(kind, type) and kind in (Arm, EndReason, Outcome):
        return kind(value)
    return value


@dataclass(frozen=True)
class Endpoint(Message):
    """Where a model answers. `sealed_key` opens only on agent hosts, and only for `base_url`."""

    provider: str
    base_url: str
    model_id: str
    sealed_key: str = ""


@dataclass(frozen=True)
class Usage(Message):
    """What an attempt used. A field is None when any turn did not report it."""

    n_turns: int = 0
    n_input_tokens: int | None = None
    n_cached_tokens: int | None = None
    n_output_tokens: int | None = None
    wall_sec: float | None = None


@dataclass(frozen=True)
class Mismatch(Message):
    """The first place where an output was wrong."""

    path: str
    reason: str
    error: float | None = None
    allowance: float | None = None
    rms_error: float | None = None
    rms_allowance: float | None = None
    n_wrong: int | None = None
    n_elements: int | None = None


@dataclass(frozen=True)
class Verdict(Message):
    """The grader's answer about one kernel on one variant, device and workload.

    Times are medians over the timing draws in ms; draws are in ms, in the order drawn.
    `kernel_ms` and `eager_ms` are set only when every timing draw completed.
    """

    outcome: Outcome
    stage: str
    message: str
    problem: str
    dsl: str
    device: str
    workload: str
    n_correct_draws: int = 0
    kernel_ms: float | None = None
    eager_ms: float | None = None
    kernel_draws_ms: tuple[float, ...] = ()
    eager_draws_ms: tuple[float, ...] = ()
    mismatch: Mismatch | None = None
    error_ratio: float | None = None
    rms_ratio: float | None = None
    findings: tuple[str, ...] = ()
    isolation: str = ""
    log_tail: str = ""
    elapsed_sec: float | None = None
    harness_sec: float | None = None
    environment: JsonObject = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every draw was correct and timing completed."""
        return self.outcome is Outcome.PASSED

    @property
    def speedup(self) -> float | None:
        """Eager time over kernel time, uncapped; None when the kernel did not pass."""
        if self.kernel_ms is None or self.eager_ms is None or not self.passed:
            return None
        return self.eager_ms / self.kernel_ms


@dataclass(frozen=True)
class GradeOrder(Message):
    """One kernel to grade on a GPU (or CPU) host."""

    problem: str
    dsl: str
    kernel: str
    device: str
    workload: str


@dataclass(frozen=True)
class AttemptOrder(Message):
    """One attempt to make. Answers carry `lease_token`; a stale one is refused."""

    trial_id: int
    lease_token: str
    problem: str
    problem_fingerprint: str
    arm: Arm
    device: str
    workload: str
    endpoint: Endpoint
    budget_sec: float
    submission_limit: int
    skill: str | None = None
    skill_digest: str | None = None


@dataclass(frozen=True)
class AttemptEvent(Message):
    """Something that happened on the way; `sequence` counts from 1 within a lease.

    Kinds: `heartbeat` (no body), `turn` (role, text, tool calls, usage), `submission` (number,
    kernel, verdict, elapsed_sec, counted), `note` (text).
    """

    trial_id: int
    lease_token: str
    sequence: int
    kind: str
    elapsed_sec: float
    body: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class AttemptReport(Message):
    """How an attempt ended. `verdict` is None when nothing could be graded for lack of a host."""

    trial_id: int
    lease_token: str
    end_reason: EndReason
    detail: str
    kernel: str | None
    skill: str | None
    verdict: Verdict | None
    usage: Usage
    environment: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class PreflightOrder(Message):
    """An endpoint to try once, before any run."""

    entry_id: int
    check_token: str
    endpoint: Endpoint


@dataclass(frozen=True)
class PreflightReport(Message):
    """What the endpoint answered; `steps` are sentences in the order tried."""

    entry_id: int
    check_token: str
    passed: bool
    summary: str
    steps: tuple[str, ...] = ()
