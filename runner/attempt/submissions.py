"""Feedback within an attempt: at most so many verdicts, told to the model as JSON."""

import json
from collections.abc import Callable

from runner.attempt.diary import Diary
from runner.attempt.workspace import Workspace
from runner.judge import Judge, grade_patiently
from runner.messages import Verdict
from runner.protocol import KERNEL_LIMIT_BYTES


class Submissions:
    """Counts what was graded; a kernel that was never run costs nothing."""

    def __init__(
        self,
        workspace: Workspace,
        judge: Judge,
        diary: Diary,
        *,
        limit: int,
        sleep: Callable[[float], None],
    ) -> None:
        self._workspace = workspace
        self._judge = judge
        self._diary = diary
        self._limit = limit
        self._sleep = sleep
        self._n_made = 0
        self._n_counted = 0

    def submit(self) -> str:
        """Grade kernel.py as it stands and return the feedback as JSON text."""
        remaining = self._limit - self._n_counted
        if remaining <= 0:
            message = f"all {self._limit} submissions are used; finish when the files are as wanted"
            return json.dumps({"submission": None, "remaining": 0, "message": message})
        found = self._workspace.read("kernel.py", limit_bytes=KERNEL_LIMIT_BYTES)
        if found.text is None:
            return json.dumps(
                {
                    "submission": None,
                    "remaining": remaining,
                    "outcome": "refused",
                    "message": found.fault,
                }
            )
        verdict = grade_patiently(self._judge, found.text, sleep=self._sleep)
        counted = verdict.outcome.counts_as_submission
        self._n_made += 1
        self._n_counted += counted
        self._diary.submission(self._n_made, found.text, verdict, counted=counted)
        return json.dumps(self._feedback(verdict), ensure_ascii=False)

    def _feedback(self, verdict: Verdict) -> dict[str, object]:
        """Return what the model may know: why, where and how fast, and no seed or draw."""
        mismatch = verdict.mismatch.to_json() if verdict.mismatch else None
        feedback: dict[str, object] = {
            "submission": self._n_made,
            "remaining": self._limit - self._n_counted,
            "outcome": verdict.outcome.value,
            "message": verdict.message,
            "kernel_ms": verdict.kernel_ms,
            "eager_ms": verdict.eager_ms,
            "speedup": verdict.speedup,
            "mismatch": mismatch,
        }
        if verdict.log_tail:
            feedback["log"] = verdict.log_tail
        if verdict.findings:
            feedback["findings"] = list(verdict.findings)
        return feedback
