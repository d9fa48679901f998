"""Who grades, and what an attempt hears when nobody can."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from runner.judge import LocalJudge, QueueJudge, grade_patiently, lost
from runner.messages import GradeOrder, Verdict
from runner.protocol import Outcome

ORDER = GradeOrder(
    problem="36_rmsnorm_h128_qwen3_30b_bf16", dsl="tirx", kernel="", device="cpu", workload="smoke"
)


def test_a_kernel_that_does_not_parse_is_refused_by_the_graders_program() -> None:
    verdict = LocalJudge(ORDER).grade("def (")
    assert verdict.outcome is Outcome.REFUSED
    assert (verdict.problem, verdict.dsl, verdict.device) == (ORDER.problem, "tirx", "cpu")


def test_an_order_that_the_grader_does_not_understand_is_a_fault_of_the_host() -> None:
    verdict = LocalJudge(GradeOrder("99_nothing", "tirx", "", "cpu", "smoke")).grade("x = 1")
    assert verdict.outcome is Outcome.INFRASTRUCTURE
    assert "ended with 2" in verdict.message


def test_a_grader_that_does_not_end_is_ended() -> None:
    verdict = LocalJudge(ORDER, limit_sec=0.05).grade("x = 1")
    assert verdict.outcome is Outcome.INFRASTRUCTURE
    assert "did not end" in verdict.message


def test_a_grader_gets_none_of_the_hosts_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen.json"
    stand_in = tmp_path / "interpreter"
    stand_in.write_text(f"#!/bin/sh\nenv > {seen}\n")
    stand_in.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(stand_in))
    for name in ("MKB_SEAL_PRIVATE_KEY", "OPENAI_API_KEY", "MKB_BROKER", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    LocalJudge(ORDER).grade("x = 1")
    environment = seen.read_text()
    assert "hush" not in environment
    assert "CUDA_VISIBLE_DEVICES=1" in environment


class Flaky:
    """A judge passed through the door: fails so often, then grades."""

    def __init__(self, n_failures: int) -> None:
        self.n_asked = 0
        self._n_failures = n_failures

    def grade(self, kernel: str) -> Verdict:
        self.n_asked += 1
        if self.n_asked <= self._n_failures:
            return lost(ORDER, "the card fell off the bus")
        return Verdict(Outcome.REFUSED, "intake", kernel, ORDER.problem, "tirx", "cpu", "smoke")


@pytest.mark.parametrize(
    ("n_failures", "n_asked", "outcome"),
    [(0, 1, Outcome.REFUSED), (2, 3, Outcome.REFUSED), (9, 3, Outcome.INFRASTRUCTURE)],
)
def test_a_failing_host_is_asked_three_times(
    n_failures: int, n_asked: int, outcome: Outcome
) -> None:
    judge = Flaky(n_failures)
    pauses: list[float] = []
    assert grade_patiently(judge, "k", sleep=pauses.append).outcome is outcome
    assert judge.n_asked == n_asked
    assert pauses == [30.0] * min(n_failures, 2)


def test_a_queue_that_nobody_serves_gives_up(filesystem_broker: Path) -> None:
    seconds = iter(range(100))
    judge = QueueJudge(
        ORDER, limit_sec=5.0, clock=lambda: float(next(seconds)), sleep=lambda _: None
    )
    verdict = judge.grade("x = 1")
    assert verdict.outcome is Outcome.INFRASTRUCTURE
    assert "no grader answered within 5 s" in verdict.message


@pytest.mark.parametrize("answer", ["{}", '"text"', '{"outcome": "splendid"}', "null"])
def test_an_answer_that_is_no_verdict_is_a_fault_of_the_host(
    filesystem_broker: Path, answer: str
) -> None:
    results = filesystem_broker / "results"

    def answering(_sec: float) -> None:
        # What a grading host writes when it is done; the id is in the message that waits.
        (message,) = (filesystem_broker / "messages").iterdir()
        task_id = json.loads(message.read_text())["headers"]["id"]
        meta = {"status": "SUCCESS", "result": json.loads(answer), "task_id": task_id}
        (results / f"celery-task-meta-{task_id}").write_text(json.dumps(meta))

    verdict = QueueJudge(ORDER, limit_sec=30.0, sleep=answering).grade("x = 1")
    assert verdict.outcome is Outcome.INFRASTRUCTURE
    assert "gave no verdict" in verdict.message
    assert list(results.iterdir()) == []


def test_a_result_read_half_written_is_read_again(filesystem_broker: Path) -> None:
    results = filesystem_broker / "results"
    writes = iter([b'{"status": "SUCC', None])
    good: Mapping[str, object] = Flaky(0).grade("k").to_json()

    def answering(_sec: float) -> None:
        (message,) = (filesystem_broker / "messages").iterdir()
        task_id = json.loads(message.read_text())["headers"]["id"]
        meta = {"status": "SUCCESS", "result": good, "task_id": task_id, "children": []}
        part = next(writes)
        path = results / f"celery-task-meta-{task_id}"
        path.write_bytes(part if part is not None else json.dumps(meta).encode())

    verdict = QueueJudge(ORDER, limit_sec=30.0, sleep=answering).grade("x = 1")
    assert verdict.outcome is Outcome.REFUSED


def test_a_broker_that_is_away_is_a_fault_of_the_host(filesystem_broker: Path) -> None:
    for folder in ("messages", "control"):
        path = filesystem_broker / folder
        for item in path.iterdir():
            item.unlink()
        path.rmdir()
        path.write_text("in the way")
    verdict = QueueJudge(ORDER).grade("x = 1")
    assert verdict.outcome is Outcome.INFRASTRUCTURE
    assert "broker" in verdict.message
