"""Messages survive the journey as JSON, and what does not fit is refused by name."""

import json

import pytest

from runner.messages import (
    AttemptOrder,
    AttemptReport,
    Endpoint,
    GradeOrder,
    Mismatch,
    PreflightReport,
    Usage,
    Verdict,
)
from runner.protocol import Arm, EndReason, Outcome

VERDICT = Verdict(
    outcome=Outcome.WRONG_VALUES,
    stage="correctness",
    message="too far off",
    problem="36_rmsnorm_h128_qwen3_30b_bf16",
    dsl="tirx",
    device="cpu",
    workload="smoke",
    kernel_draws_ms=(1.5, 2.0),
    mismatch=Mismatch(path="[0]", reason="error", error=0.5, n_wrong=3),
    environment={"torch": "2.13.0"},
)
ORDER = AttemptOrder(
    trial_id=7,
    lease_token="token",
    problem="36_rmsnorm_h128_qwen3_30b_bf16",
    problem_fingerprint="f" * 64,
    arm=Arm.CUTEDSL_TO_TIRX_SKILL,
    device="cpu",
    workload="smoke",
    endpoint=Endpoint("openai", "https://vendor.example/v1", "m", "sealed"),
    budget_sec=60.0,
    submission_limit=3,
    skill="What I saw: ×2.",
    skill_digest="d" * 64,
)
REPORT = AttemptReport(
    trial_id=7,
    lease_token="token",
    end_reason=EndReason.FINISHED,
    detail="",
    kernel="x = 1",
    skill=None,
    verdict=VERDICT,
    usage=Usage(n_turns=2, n_input_tokens=None, n_output_tokens=5, wall_sec=1.5),
)


@pytest.mark.parametrize("message", [VERDICT, ORDER, REPORT, PreflightReport(1, "t", True, "ok")])
def test_a_message_comes_back_equal_after_a_journey_as_json(
    message: Verdict | AttemptOrder | AttemptReport | PreflightReport,
) -> None:
    text = json.dumps(message.to_json())
    assert type(message).from_json(json.loads(text)) == message


def test_enums_and_nested_messages_come_back_as_what_they_were() -> None:
    report = AttemptReport.from_json(REPORT.to_json())
    assert report.end_reason is EndReason.FINISHED
    assert report.verdict is not None
    assert report.verdict.mismatch == VERDICT.mismatch
    assert AttemptOrder.from_json(ORDER.to_json()).arm is Arm.CUTEDSL_TO_TIRX_SKILL


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"GradeOrder has no field colour"):
        GradeOrder.from_json({"problem": "p", "colour": "red"})


def test_a_missing_field_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="workload"):
        GradeOrder.from_json({"problem": "p", "dsl": "tirx", "kernel": "", "device": "cpu"})


def test_a_word_outside_the_closed_list_is_refused() -> None:
    with pytest.raises(ValueError, match="splendid"):
        Verdict.from_json({**VERDICT.to_json(), "outcome": "splendid"})


def test_what_json_cannot_hold_does_not_leave() -> None:
    with pytest.raises(ValueError, match="JSON"):
        Usage(wall_sec=float("nan")).to_json()


def test_speedup_is_eager_over_kernel_and_only_of_a_passing_kernel() -> None:
    timed = {**VERDICT.to_json(), "kernel_ms": 2.0, "eager_ms": 6.0}
    assert Verdict.from_json(timed).speedup is None
    # 6 ms / 2 ms = 3
    assert Verdict.from_json({**timed, "outcome": "passed"}).speedup == 3.0
    assert Verdict.from_json({**timed, "outcome": "passed", "eager_ms": None}).speedup is None
