"""The command line: one verdict on stdout, an exit status, and a sentence for bad usage."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.messages import Verdict
from runner.protocol import Outcome
from tests.runner.grader.conftest import KERNELS

HONEST = str(KERNELS / "honest_cutedsl.py")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runner.grader", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def verdict_of(finished: subprocess.CompletedProcess[str]) -> Verdict:
    payload: dict[str, Any] = json.loads(finished.stdout)
    return Verdict.from_json(payload)


def test_a_passing_kernel_exits_with_0_and_one_line_of_json() -> None:
    finished = run("36", "cutedsl", HONEST, "--device", "cpu", "--json")
    assert finished.returncode == 0, finished.stdout
    assert finished.stdout.count("\n") == 1
    verdict = verdict_of(finished)
    assert verdict.outcome is Outcome.PASSED
    assert verdict.workload == "smoke"
    assert len(verdict.kernel_draws_ms) == 50


def test_a_held_out_workload_is_checked_and_not_timed() -> None:
    finished = run("36", "cutedsl", HONEST, "--device", "cpu", "--workload", "heldout_1")
    verdict = verdict_of(finished)
    assert (finished.returncode, verdict.outcome) == (0, Outcome.PASSED)
    assert verdict.n_correct_draws == 5
    assert verdict.kernel_ms is None
    assert verdict.kernel_draws_ms == ()


def test_a_kernel_that_does_not_parse_exits_with_1(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("def solve(:\n")
    finished = run("36", "tirx", str(kernel), "--device", "cpu")
    assert finished.returncode == 1
    assert verdict_of(finished).outcome is Outcome.REFUSED


@pytest.mark.parametrize("content", [b"\xff\xfe", b"#" * 300_001], ids=["not-utf8", "too-large"])
def test_a_file_that_is_refused_exits_with_1(tmp_path: Path, content: bytes) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_bytes(content)
    finished = run("36", "tirx", str(kernel), "--device", "cpu")
    assert finished.returncode == 1
    assert verdict_of(finished).outcome is Outcome.REFUSED


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("99", "tirx", HONEST), "no problem is called '99'"),
        (("36", "triton", HONEST), "no DSL is called 'triton'; there are: cutedsl, tirx"),
        (("36", "tirx", HONEST, "--device", "tpu"), "no device is called 'tpu'"),
        (("36", "tirx", HONEST, "--workload", "tiny"), "has no workload 'tiny'; there are: full"),
        (("36", "tirx", "/no/kernel.py"), "/no/kernel.py cannot be read: No such file"),
        (("36", "tirx"), "required: kernel"),
        (("36", "tirx", HONEST, "--nonsense"), "--nonsense"),
    ],
)
def test_bad_usage_exits_with_2_and_one_sentence(arguments: tuple[str, ...], words: str) -> None:
    finished = run(*arguments)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert words in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_a_time_limit_that_is_no_number_is_bad_usage() -> None:
    for value in ("soon", "-1", "601", "nan"):
        finished = run("36", "cutedsl", HONEST, MKB_GRADING_SEC=value)
        assert finished.returncode == 2
        assert f"MKB_GRADING_SEC='{value}'" in finished.stderr


def test_a_host_without_a_gpu_exits_with_3() -> None:
    finished = run("36", "cutedsl", HONEST, "--device", "cuda", CUDA_VISIBLE_DEVICES="")
    assert finished.returncode == 3
    verdict = verdict_of(finished)
    assert verdict.outcome is Outcome.INFRASTRUCTURE
    assert "no CUDA device" in verdict.message


def test_a_host_without_the_sandbox_asked_for_exits_with_3() -> None:
    finished = run("36", "cutedsl", HONEST, "--device", "cpu", MKB_SANDBOX="no-such-level")
    assert finished.returncode == 3
    verdict = verdict_of(finished)
    assert verdict.outcome is Outcome.INFRASTRUCTURE
    assert "sandbox could not be started" in verdict.message
