"""Real kernels in real children: honest ones pass, and each that misbehaves is told what it did."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.grader import limits
from runner.grader.faults import HostError, KernelError
from runner.grader.session import Session
from runner.messages import Verdict
from runner.protocol import Dsl, Outcome
from tests.runner.grader.conftest import grade, kernel_text


@pytest.mark.parametrize("dsl", list(Dsl))
def test_an_honest_kernel_passes_with_all_its_draws(
    dsl: Dsl, request: pytest.FixtureRequest
) -> None:
    verdict: Verdict = request.getfixturevalue(f"honest_{dsl}")
    assert (verdict.outcome, verdict.stage, verdict.mismatch) == (Outcome.PASSED, "done", None)
    assert verdict.n_correct_draws == limits.CORRECTNESS_DRAWS
    assert len(verdict.kernel_draws_ms) == len(verdict.eager_draws_ms) == limits.TIMED_DRAWS
    assert min(*verdict.kernel_draws_ms, *verdict.eager_draws_ms) > 0
    assert verdict.speedup == verdict.eager_ms / verdict.kernel_ms  # type: ignore[operator]
    assert 0 < (verdict.error_ratio or 0) < 1
    assert 0 < (verdict.rms_ratio or 0) < 1
    assert Verdict.from_json(verdict.to_json()) == verdict


def test_a_verdict_says_where_and_with_what_it_was_reached(honest_tirx: Verdict) -> None:
    facts = honest_tirx.environment
    for name in (
        "torch",
        "apache-tvm",
        "python",
        "cpu_model",
        "kernel_sha256",
        "overhead_us",
        "grader",
    ):
        assert facts[name], name
    assert honest_tirx.isolation == facts["isolation"] != ""
    assert 0 < (honest_tirx.harness_sec or 0) < (honest_tirx.elapsed_sec or 0)


# Found in a child that goes on living: the outcome, and words of the message.
FOUND = {
    "import_error": (Outcome.IMPORT_ERROR, "no_such_module' (kernel.py, line "),
    "no_solve": (Outcome.IMPORT_ERROR, "defines no solve"),
    "compile_error_cutedsl": (Outcome.COMPILE_ERROR, "unsupported operand"),
    "wrong_type": (Outcome.WRONG_STRUCTURE, "output is of type float"),
    "wrong_container": (Outcome.WRONG_STRUCTURE, "a tuple; return a tensor"),
    "wrong_shape": (Outcome.WRONG_SHAPE, "[1023, 128]; return [1024, 128]"),
    "wrong_dtype": (Outcome.WRONG_DTYPE, "float32; return bfloat16"),
    "not_a_number": (Outcome.NON_FINITE, "131072 of 131072 elements are NaN"),
    "raises": (Outcome.RUNTIME_ERROR, "ValueError: the kernel gave up"),
    "mutates_input": (Outcome.MUTATED_INPUT, "changed input 0"),
    "returns_input": (Outcome.WRONG_VALUES, "over its allowance"),
    "zeros": (Outcome.WRONG_VALUES, "over its allowance"),
    "small_values_zeroed": (Outcome.WRONG_VALUES, "would pass the release's rule"),
    "cached_by_address": (Outcome.WRONG_VALUES, "over its allowance"),
    "late_thread": (Outcome.WRONG_VALUES, "over its allowance"),
    "asks_too_much": (Outcome.OOM, "can't allocate memory"),
    "answers_in_input": (Outcome.MUTATED_INPUT, "changed input 0"),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_wrong_kernel_is_told_what_is_wrong(
    name: str, judge: Callable[[str], KernelError]
) -> None:
    outcome, words = FOUND[name]
    fault = judge(kernel_text(name))
    assert fault.outcome is outcome
    assert words in str(fault)


# Graded by itself: the outcome, the stage, and words of the message.
MISBEHAVED = {
    "compile_error_tirx": (Outcome.COMPILE_ERROR, "correctness", "no_such_function"),
    "wrong_arguments_tirx": (Outcome.RUNTIME_ERROR, "correctness", "expected float32"),
    "exits": (Outcome.CRASH, "correctness", "exited with status 0, without an answer"),
    "segfault": (Outcome.CRASH, "correctness", "SIGSEGV"),
    "zeros": (Outcome.WRONG_VALUES, "correctness", "over its allowance"),
    "late_thread_in_timing": (Outcome.WRONG_VALUES, "warm-up", "over its allowance"),
    "garbage_on_channel": (Outcome.TAMPERING, "correctness", "wrote to the grader's channel"),
    "forged_answer": (Outcome.TAMPERING, "correctness", "wrote to the grader's channel"),
    "other_dsl_in_solve": (Outcome.FORBIDDEN, "correctness", "loaded tvm"),
    "other_language": (Outcome.FORBIDDEN, "reading", "uses triton"),
    "eager_only": (Outcome.NO_DSL_WORK, "reading", "never uses CuTe DSL"),
}


@pytest.mark.parametrize("name", MISBEHAVED)
def test_a_kernel_that_misbehaves_is_told_what_it_did(name: str) -> None:
    outcome, stage, words = MISBEHAVED[name]
    verdict = grade(kernel_text(name), dsl="tirx" if name.endswith("tirx") else "cutedsl")
    assert (verdict.outcome, verdict.stage) == (outcome, stage)
    assert words in verdict.message
    assert not verdict.passed
    assert verdict.kernel_ms is verdict.eager_ms is verdict.speedup is None


def test_a_forged_verdict_is_only_a_line_in_the_log() -> None:
    verdict = grade(kernel_text("forged_verdict"))
    assert verdict.outcome is Outcome.CRASH
    assert verdict.kernel_ms is None
    assert verdict.log_tail.count('"outcome": "passed"') == 2


def test_a_forged_clock_is_found_out_and_replaced(honest_cutedsl: Verdict) -> None:
    verdict = grade(kernel_text("forged_clock"))
    assert verdict.outcome is Outcome.PASSED
    assert "two clocks disagree: the child claims 0.0000 ms" in verdict.findings[0]
    # It does eager's work twenty times over.
    assert (verdict.kernel_ms or 0) > (verdict.eager_ms or 0)


def test_a_kernel_that_takes_too_much_memory_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(limits.HOST_MEMORY_BYTES, "cpu", 1 << 30)
    verdict = grade(kernel_text("memory_bomb"))
    assert verdict.outcome is Outcome.OOM
    assert "more memory than it may" in verdict.message


def test_a_kernel_sees_nothing_of_the_project_but_its_own_side() -> None:
    verdict = grade(kernel_text("curious"))
    found = json.loads(verdict.log_tail.partition("FOUND ")[2])
    assert found["importable"] == []
    names = sorted(Path(path).name for path in found["folder"])
    staged = ["__init__.py", "__init__.py", "blocks.py", "child.py", "clock.py", "forms.py"]
    assert names == [*staged, "kernel.py", "wire.py"]
    assert not [name for name in found["environment"] if name.startswith(("MKB", "DJANGO"))]


@pytest.mark.parametrize(
    ("name", "outcome", "words"),
    [
        ("honest_in_place", Outcome.PASSED, "correct in all draws"),
        ("stray_write", Outcome.MUTATED_INPUT, "changed input 1"),
        ("copy_instead_of_in_place", Outcome.WRONG_VALUES, "inputs[2] (changed in place)"),
    ],
)
def test_an_in_place_problem_excepts_exactly_its_own_inputs(
    name: str, outcome: Outcome, words: str
) -> None:
    verdict = grade(kernel_text(name), problem="25")
    assert verdict.outcome is outcome
    assert words in verdict.message


def test_a_kernel_that_hangs_is_ended_with_all_it_started() -> None:
    deadline = time.monotonic() + limits.START_LIMIT_SEC
    hanging = "import time\nprint('here')\ntime.sleep(1000)\n"
    with Session(hanging, dsl=Dsl.CUTEDSL, device="cpu", deadline=deadline) as session:
        session.ready()
        session.deadline = time.monotonic() + 0.5
        with pytest.raises(KernelError, match="time ran out while importing it") as caught:
            session.load([])
        pid = session.pid
    assert caught.value.outcome is Outcome.TIMEOUT
    assert not os.path.exists(f"/proc/{pid}")
    assert session.log_tail == "here\n"


def test_a_grading_that_outlasts_its_limit_is_a_timeout(honest_cutedsl: Verdict) -> None:
    limit_sec = (honest_cutedsl.elapsed_sec or 0) + 2
    verdict = grade(kernel_text("hangs"), limit_sec=limit_sec)
    assert verdict.outcome is Outcome.TIMEOUT
    assert verdict.message == "time ran out while running solve"


def test_a_child_that_cannot_start_is_no_fault_of_the_kernel() -> None:
    with (
        Session("", dsl=Dsl.CUTEDSL, device="cpu", deadline=time.monotonic() - 1) as session,
        pytest.raises(HostError, match="time ran out while starting"),
    ):
        session.ready()
