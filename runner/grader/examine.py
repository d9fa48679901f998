"""The examination of one kernel: calibration, correctness draws, warm-up and timed draws."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runner.grader import clock, forms, handover, limits, structure, timing
from runner.grader.accuracy import Truth, compare, differing, touched_rows
from runner.grader.cases import Answer, Case
from runner.grader.faults import KernelError
from runner.grader.record import Record, Work
from runner.grader.screening import Screen
from runner.grader.session import Returned, Session
from runner.messages import Mismatch
from runner.protocol import Outcome


@dataclass(frozen=True)
class Draw:
    """One draw's inputs and what the reference makes of them."""

    inputs: list[Any]
    expected: Answer
    truths: tuple[Truth, ...]


class Examiner:
    """Asks one child about one kernel; raises KernelError at the first thing that is wrong."""

    def __init__(self, session: Session, record: Record, *, device: str) -> None:
        self._session = session
        self._record = record
        self._device = device
        self._suspects: tuple[str, ...] = ()
        self._screen = Screen()

    def prepare(self, case: Case) -> Draw:
        """Draw inputs and compute reference and anchor."""
        with self._record.spending(Work.DRAWS):
            inputs = case.draw()
            expected = case.reference(inputs)
            return Draw(inputs, expected, case.truths(inputs, expected))

    def calibrate(self, case: Case, draw: Draw) -> timing.Overhead:
        """Measure what a call costs beside solve; only before a kernel was loaded.

        Each null call goes the whole way of a timed one, eager in between included: new mappings,
        cores gone to sleep and a GPU that changes its owner cost more than the round trip itself.
        """
        calls = []
        for _ in range(1 + limits.CALIBRATION_CALLS):
            calls.append(
                handover.null_call(
                    self._session, draw.inputs, draw.expected.form, device=self._device
                )
            )
            self._eager(case, draw.inputs)
        return timing.calibrate(calls[1:], device=self._device)

    def load(self, suspects: tuple[str, ...]) -> None:
        """Import kernel.py; from here on the suspected packages must not turn up."""
        self._record.stage = "import"
        self._suspects = suspects
        with self._record.spending(Work.KERNEL):
            self._refuse_seen(self._session.load(suspects))

    def correctness(self, case: Case, first: Draw | None = None) -> None:
        """Judge the kernel on CORRECTNESS_DRAWS draws, the first of which may be ready."""
        for number in range(limits.CORRECTNESS_DRAWS):
            draw = first if first is not None and number == 0 else self.prepare(case)
            returned, outputs = self._call(case, draw.inputs, draw.expected.form)
            self._judge(case, draw, outputs)
            structure.check_fresh(returned.form, draw.expected.form)
            for output, truth in enumerate(draw.truths):
                self._screen.learn(output, truth, case.rule(output, draw.expected))
            self._record.n_correct_draws += 1

    def time(self, case: Case, form: forms.Form, overhead: timing.Overhead) -> None:
        """Warm up, then time kernel and eager on the same draws, and check every output.

        Args:
            form: of the reference's outputs, which is the same in every draw of a case.
            overhead: of this child, as calibrated.
        """
        self._record.stage = "warm-up"
        for _ in range(limits.WARMUP_DRAWS):
            self._timed_draw(case, form)
        self._record.stage = "timing"
        generator = secrets.SystemRandom()
        rechecked = set(generator.sample(range(limits.TIMED_DRAWS), limits.ANCHOR_RECHECKS))
        calls, eager_ns = [], []
        for number in range(limits.TIMED_DRAWS):
            returned, spent_ns = self._timed_draw(case, form, recheck=number in rechecked)
            calls.append(returned)
            eager_ns.append(spent_ns)
        times = timing.kernel_times(calls, overhead, device=self._device)
        self._record.findings += times.findings
        self._record.kernel_draws_ms = times.draws_ms
        self._record.eager_draws_ms = tuple(spent / 1e6 for spent in eager_ns)

    def _timed_draw(
        self, case: Case, form: forms.Form, *, recheck: bool = False
    ) -> tuple[Returned, int]:
        with self._record.spending(Work.DRAWS):
            inputs = case.draw()
        returned, outputs = self._call(case, inputs, form)
        expected, spent_ns = self._eager(case, inputs)
        rules = [case.rule(output, expected) for output in range(len(outputs))]
        clear = all(map(self._screen.clears, range(len(outputs)), outputs, expected.tensors, rules))
        if recheck or not clear:
            with self._record.spending(Work.DRAWS):
                draw = Draw(inputs, expected, case.truths(inputs, expected))
            self._judge(case, draw, outputs)
        structure.check_fresh(returned.form, expected.form)
        return returned, spent_ns

    def _eager(self, case: Case, inputs: Sequence[Any]) -> tuple[Answer, int]:
        """Time the reference; return its answer and the nanoseconds it took."""
        with self._record.spending(Work.DRAWS):
            # Eager gets fresh copies too, so that both start from memory that was just written.
            copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
            result, spent_ns = clock.timed_call(case.eager, copies, device=self._device)
        return case.answer(copies, result), spent_ns

    def _call(
        self, case: Case, inputs: Sequence[Any], form: forms.Form
    ) -> tuple[Returned, tuple[torch.Tensor, ...]]:
        if self._device == "cuda":
            _leave_room()
        returned, outputs = handover.call(
            self._session, inputs, form, mutates=case.mutates, device=self._device
        )
        self._record.spent_sec[Work.KERNEL] += returned.wall_ns / 1e9
        self._refuse_seen(returned.seen)
        return returned, outputs

    def _judge(self, case: Case, draw: Draw, outputs: Sequence[torch.Tensor]) -> None:
        """Compare every output with the anchor.

        Raises:
            KernelError: wrong_values or non_finite, with the first mismatch.
        """
        for output, (actual, truth) in enumerate(zip(outputs, draw.truths, strict=True)):
            path = case.path(output, draw.expected)
            found = compare(actual, truth, rule=case.rule(output, draw.expected), path=path)
            self._record.note(error_ratio=found.error_ratio, rms_ratio=found.rms_ratio)
            if found.outcome is not None and found.mismatch is not None:
                raise KernelError(
                    found.outcome, f"{found.mismatch.path}: {found.mismatch.reason}", found.mismatch
                )
        n_outputs = len(outputs) - len(case.mutates)
        for place, number in enumerate(case.mutates):
            self._refuse_stray(
                outputs[n_outputs + place],
                draw.expected.tensors[n_outputs + place],
                before=draw.inputs[number],
                path=case.path(n_outputs + place, draw.expected),
            )

    def _refuse_stray(
        self, actual: torch.Tensor, expected: torch.Tensor, *, before: torch.Tensor, path: str
    ) -> None:
        """Refuse changes in those rows of a changed input that the reference left alone."""
        touched = touched_rows(expected, before)
        stray = differing(actual, before, bitwise=True).reshape(len(touched), -1) & ~touched
        if n_wrong := int(stray.sum()):
            reason = f"{n_wrong} elements changed that must keep every bit"
            mismatch = Mismatch(path, reason, n_wrong=n_wrong, n_elements=actual.numel())
            raise KernelError(Outcome.WRONG_VALUES, f"{path}: {reason}", mismatch)

    def _refuse_seen(self, seen: tuple[str, ...]) -> None:
        if broken := [name for name in seen if name in self._suspects]:
            raise KernelError(
                Outcome.FORBIDDEN, f"kernel.py loaded {broken[0]}, which it names and may not use"
            )


def _leave_room() -> None:
    """Give what torch only keeps in store back to the device, when the child may need it."""
    torch.cuda.synchronize()
    free_bytes, total_bytes = torch.cuda.mem_get_info()
    if free_bytes < total_bytes // 4:
        torch.cuda.empty_cache()
