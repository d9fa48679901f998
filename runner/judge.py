"""Who grades a kernel: a grader started here, or one that waits behind a GPU queue."""

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from celery.result import AsyncResult
from kombu.exceptions import KombuError

from runner import queues
from runner.messages import GradeOrder, Verdict
from runner.protocol import GRADING_LIMIT_SEC, MAX_TRIES, Outcome

logger = logging.getLogger(__name__)

# What a grader may take beyond the limit that it holds itself to: imports and the reference.
GRADER_MARGIN_SEC = 120.0
# The longest that an order may wait for its turn before it is taken for lost.
QUEUE_WAIT_SEC = 1_800.0
TRY_PAUSE_SEC = 30.0

_PASSED_ON = (
    "CUDA_", "HOME", "LANG", "LC_", "LD_LIBRARY_PATH", "MKB_GRADING_SEC", "MKB_SANDBOX", "NVIDIA_",
    "PATH", "PYTHON", "TMPDIR", "USER", "VIRTUAL_ENV",
)  # fmt: skip
_READ_LIMIT_CHARACTERS = 400


class Judge(Protocol):
    """Grades kernels of one variant on one device and workload."""

    def grade(self, kernel: str) -> Verdict:
        """Return the verdict on a kernel; `infrastructure` when no grader could give one."""


class LocalJudge:
    """Grades on this machine, in a grader of its own for each kernel."""

    def __init__(self, order: GradeOrder, *, limit_sec: float | None = None) -> None:
        self._order = order
        self._limit_sec = GRADING_LIMIT_SEC + GRADER_MARGIN_SEC if limit_sec is None else limit_sec

    def grade(self, kernel: str) -> Verdict:
        """Start the grader's program and read its answer; see Judge."""
        with tempfile.TemporaryDirectory(prefix="grade-") as folder:
            path = Path(folder, "kernel.py")
            path.write_text(kernel, encoding="utf-8")
            return self._answer(path)

    def _answer(self, path: Path) -> Verdict:
        order = self._order
        command = [
            sys.executable, "-m", "runner.grader", order.problem, order.dsl, str(path),
            "--device", order.device, "--workload", order.workload, "--json",
        ]  # fmt: skip
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_grader_environment(os.environ),
            start_new_session=True,
        ) as grader:
            try:
                answer, complaint = grader.communicate(timeout=self._limit_sec)
            except subprocess.TimeoutExpired:
                os.killpg(grader.pid, signal.SIGKILL)
                return lost(order, f"the grader did not end within {self._limit_sec:.0f} s")
        try:
            return Verdict.from_json(json.loads(answer))
        except (ValueError, TypeError):
            said = complaint.decode("utf-8", "replace")[-_READ_LIMIT_CHARACTERS:]
            logger.warning("grader ended with %s: %s", grader.returncode, said)
            return lost(order, f"the grader gave no verdict and ended with {grader.returncode}")


class QueueJudge:
    """Sends each kernel to the queue of its device and waits for the verdict."""

    def __init__(
        self,
        order: GradeOrder,
        *,
        limit_sec: float = GRADING_LIMIT_SEC + GRADER_MARGIN_SEC + QUEUE_WAIT_SEC,
        interval_sec: float = 0.2,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._order = order
        self._limit_sec = limit_sec
        self._interval_sec = interval_sec
        self._clock = clock
        self._sleep = sleep

    def grade(self, kernel: str) -> Verdict:
        """Send the kernel and wait; see Judge."""
        order = GradeOrder(**{**vars(self._order), "kernel": kernel})
        queue = queues.gpu_queue(order.device)
        try:
            result = queues.send(queues.GRADE_KERNEL, order.to_json(), queue=queue)
        except (KombuError, OSError):
            logger.exception("order to %s not sent", queue)
            return lost(order, "the order to grade could not be sent; the broker does not answer")
        try:
            return self._wait(result, order)
        finally:
            _forget(result)

    def _wait(self, result: AsyncResult[object], order: GradeOrder) -> Verdict:
        """Ask for the result until it is there.

        Asking is a plain read. Waiting inside Celery subscribes, which threads of one worker
        cannot share, and is refused within a task.
        """
        ends_at = self._clock() + self._limit_sec
        while not _is_ready(result):
            if self._clock() >= ends_at:
                return lost(order, f"no grader answered within {self._limit_sec:.0f} s")
            self._sleep(self._interval_sec)
        try:
            return Verdict.from_json(_mapping(result.result))
        except (ValueError, TypeError):
            logger.warning("grading gave %r", result.result)
            return lost(order, "the grading host failed and gave no verdict")


def grade_patiently(
    judge: Judge, kernel: str, *, sleep: Callable[[float], None] = time.sleep
) -> Verdict:
    """Return the verdict on a kernel, asking again after failures of the grading host."""
    for _ in range(MAX_TRIES - 1):
        verdict = judge.grade(kernel)
        if verdict.outcome is not Outcome.INFRASTRUCTURE:
            return verdict
        sleep(TRY_PAUSE_SEC)
    return judge.grade(kernel)


def lost(order: GradeOrder, message: str) -> Verdict:
    """Return the verdict that says why there is none."""
    return Verdict(
        outcome=Outcome.INFRASTRUCTURE,
        stage="host",
        message=message,
        problem=order.problem,
        dsl=order.dsl,
        device=order.device,
        workload=order.workload,
    )


def _grader_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a grader needs; keys and addresses of this host stay here."""
    return {name: value for name, value in environment.items() if name.startswith(_PASSED_ON)}


def _mapping(answer: object) -> Mapping[str, Any]:
    if not isinstance(answer, Mapping):
        raise TypeError(f"{type(answer).__name__} instead of a verdict")
    return answer


def _is_ready(result: AsyncResult[object]) -> bool:
    try:
        return result.ready()
    except (KombuError, OSError, ValueError):
        # The filesystem's results are not written in one step, and a broker may be away a moment.
        return False


def _forget(result: AsyncResult[object]) -> None:
    try:
        result.forget()
    except (KombuError, OSError):
        logger.info("result %s could not be forgotten; it expires", result.id)
