"""Exceptions, exits and signals as outcomes."""

from typing import Any

import pytest

from runner.grader import faults
from runner.protocol import Outcome


def error(kind: str, *frames: str, text: str = "it broke", trace: str = "") -> dict[str, Any]:
    kinds = [kind, "builtins.Exception", "builtins.BaseException", "builtins.object"]
    return {"kinds": kinds, "text": text, "trace": trace, "frames": ["kernel", *frames]}


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (error("builtins.ValueError"), Outcome.RUNTIME_ERROR),
        (error("builtins.TypeError", "cutlass.base_dsl.dsl", "kernel"), Outcome.COMPILE_ERROR),
        (error("tvm.error.DiagnosticError", "tvm.script.parser.core"), Outcome.COMPILE_ERROR),
        (error("tvm.error.InternalError", "tvm.driver.build_module"), Outcome.COMPILE_ERROR),
        (error("builtins.ValueError", "tvm.target.target", "tvm_ffi.core"), Outcome.COMPILE_ERROR),
        (error("builtins.ValueError", "tvm.runtime.executable"), Outcome.RUNTIME_ERROR),
        (
            error("builtins.ValueError", "cutlass.cutlass_dsl.tvm_ffi_provider"),
            Outcome.RUNTIME_ERROR,
        ),
        (
            error("builtins.ValueError", "cutlass.base_dsl.dsl", "cutlass.base_dsl.jit_executor"),
            Outcome.RUNTIME_ERROR,
        ),
        (
            error("cutlass.base_dsl.common.DSLCudaRuntimeError", "cutlass.base_dsl.dsl"),
            Outcome.RUNTIME_ERROR,
        ),
        (error("builtins.MemoryError"), Outcome.OOM),
        (error("torch.OutOfMemoryError", text="CUDA out of memory."), Outcome.OOM),
        (error("builtins.SystemExit", text=""), Outcome.RUNTIME_ERROR),
        ({}, Outcome.RUNTIME_ERROR),
        ({"kinds": 3, "frames": None, "text": [], "trace": {}}, Outcome.RUNTIME_ERROR),
    ],
)
def test_the_innermost_place_decides_what_an_exception_was(
    told: dict[str, Any], outcome: Outcome
) -> None:
    assert faults.of_exception(told, loading=False).outcome is outcome


def test_while_importing_it_is_an_import_error_unless_the_compiler_refused() -> None:
    assert faults.of_exception(error("builtins.OSError"), loading=True).outcome is (
        Outcome.IMPORT_ERROR
    )
    refused = error("builtins.TypeError", "cutlass.base_dsl.compiler")
    assert faults.of_exception(refused, loading=True).outcome is Outcome.COMPILE_ERROR


def test_the_message_names_the_kernels_own_line() -> None:
    trace = (
        'File "/sandbox/runner/grader/clock.py", line 29, in timed_call\n'
        '  File "/sandbox/kernel.py", line 12, in solve\n'
        '  File "/sandbox/kernel.py", line 7, in _inner\n'
        '  File "/lib/torch/functional.py", line 400, in stack\n'
    )
    fault = faults.of_exception(error("builtins.ValueError", trace=trace), loading=False)
    assert str(fault) == "solve raised ValueError: it broke (kernel.py, line 7)"


def test_a_long_text_is_cut() -> None:
    fault = faults.of_exception(error("builtins.ValueError", text="x" * 9_000), loading=False)
    assert len(str(fault)) < 1_600


@pytest.mark.parametrize(
    ("returncode", "over_memory", "outcome", "words"),
    [
        (0, False, Outcome.CRASH, "exited with status 0, without an answer"),
        (3, False, Outcome.CRASH, "exited with status 3"),
        (None, False, Outcome.CRASH, "an unknown status"),
        (-11, False, Outcome.CRASH, "died of SIGSEGV"),
        (139, False, Outcome.CRASH, "died of SIGSEGV"),
        (134, False, Outcome.CRASH, "died of SIGABRT"),
        (-9, False, Outcome.OOM, "SIGKILL"),
        (137, False, Outcome.OOM, "SIGKILL"),
        (137, True, Outcome.OOM, "more memory than it may"),
        (255, False, Outcome.CRASH, "status 255"),
    ],
)
def test_an_end_without_an_answer_tells_why(
    returncode: int | None, over_memory: bool, outcome: Outcome, words: str
) -> None:
    fault = faults.of_death(returncode, over_memory=over_memory, doing="running solve")
    assert fault.outcome is outcome
    assert words in str(fault)
    assert "running solve" in str(fault)
