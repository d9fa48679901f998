"""Submissions: what the model hears, what they cost, and what a failing host costs."""

import json

from runner.protocol import EndReason, Outcome
from tests.runner.attempt.scripted import (
    MISMATCH,
    ScriptedJudge,
    call,
    play,
    reply,
    verdict,
    write,
)

FINISH = reply("done", call("finish"))
KERNEL = "def solve(*inputs):\n    return inputs\n"
SKILL = "Blocks of 64 gained 1.4 ×, measured twice.\n"


def test_feedback_tells_why_and_how_fast_and_what_remains() -> None:
    judge = ScriptedJudge([verdict(Outcome.WRONG_VALUES, mismatch=MISMATCH), verdict()])
    played = play(
        reply("", write("kernel.py", KERNEL)),
        reply("", call("submit")),
        reply("", call("submit")),
        FINISH,
        judge=judge,
    )
    wrong, right = (json.loads(text) for text in played.model.told[1:])
    assert wrong["submission"] == 1
    assert wrong["remaining"] == 2
    assert wrong["outcome"] == "wrong_values"
    assert wrong["mismatch"]["n_wrong"] == 7
    assert wrong["speedup"] is None
    assert right["remaining"] == 1
    # 3 ms / 2 ms = 1.5
    assert (right["kernel_ms"], right["eager_ms"], right["speedup"]) == (2.0, 3.0, 1.5)


def test_submissions_end_at_their_limit_but_the_attempt_goes_on() -> None:
    submit = reply("", call("submit"))
    played = play(reply("", write("kernel.py", KERNEL)), submit, submit, submit, submit, FINISH)
    assert json.loads(played.model.told[-1])["remaining"] == 0
    assert len(played.bodies("submission")) == 3
    assert played.report.end_reason is EndReason.FINISHED


def test_what_was_never_run_costs_no_submission() -> None:
    refused = verdict(Outcome.REFUSED)
    played = play(
        reply("", call("submit")),
        reply("", write("kernel.py", "def (")),
        reply("", call("submit")),
        reply("", call("submit")),
        FINISH,
        judge=ScriptedJudge([refused]),
    )
    missing, _, first, second = (played.model.told[index] for index in range(4))
    assert json.loads(missing)["message"] == "there is no kernel.py"
    assert [json.loads(text)["remaining"] for text in (missing, first, second)] == [3, 3, 3]
    assert [body["counted"] for body in played.bodies("submission")] == [False, False]
    assert [body["number"] for body in played.bodies("submission")] == [1, 2]


def test_a_failing_grading_host_is_asked_three_times_and_not_charged() -> None:
    lost = verdict(Outcome.INFRASTRUCTURE)
    played = play(
        reply("", write("kernel.py", KERNEL)),
        reply("", call("submit")),
        FINISH,
        judge=ScriptedJudge([lost, lost, lost, lost, verdict()]),
    )
    assert json.loads(played.model.told[1])["remaining"] == 3
    # 3 tries for the feedback, then 1 lost and 1 good one at the end; a pause after each but the
    # third and the last.
    assert len(played.judge.kernels) == 5
    assert played.pauses == [30.0, 30.0, 30.0]
    assert played.report.end_reason is EndReason.FINISHED


def test_a_final_kernel_that_no_host_grades_is_an_infrastructure_end() -> None:
    judge = ScriptedJudge([verdict(Outcome.INFRASTRUCTURE)])
    report = play(reply("", write("kernel.py", KERNEL)), FINISH, judge=judge).report
    assert report.end_reason is EndReason.INFRASTRUCTURE
    assert report.verdict is None
    assert "not graded" in report.detail
    assert report.kernel == KERNEL


def test_waiting_for_feedback_counts_on_the_clock() -> None:
    submit = call("submit")
    played = play(
        reply("", write("kernel.py", KERNEL), submit, submit, submit),
        judge=ScriptedJudge(grading_sec=400.0),
    )
    assert played.report.end_reason is EndReason.OUT_OF_TIME
    # 1 s for the turn + 400 s + 400 s; the third is not begun. The last grading is the final one.
    assert played.report.usage.wall_sec == 801.0
    assert len(played.judge.kernels) == 3
