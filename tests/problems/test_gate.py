"""Every problem tells honest answers from lazy ones; and the gate tells a weak problem."""

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from problems import catalog
from runner.grader import gate


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("problem", catalog.all_problems(), ids=lambda problem: problem.slug[:2])
def test_a_problem_passes_the_gate(problem: catalog.Problem) -> None:
    broken = [check for check in gate.Gate(problem, workload="smoke").checks() if not check.holds]
    assert broken == []


@pytest.fixture
def weak() -> Iterator[catalog.Problem]:
    """A problem whose outputs are tiny beside their rounding, and one of whose inputs is unused."""
    module: Any = types.ModuleType("weak_problem")

    def make_inputs(workload: str, device: str) -> list[torch.Tensor]:
        return [torch.randn(8, 16, device=device), torch.randn(8, 16, device=device)]

    def reference(used: torch.Tensor, unused: torch.Tensor) -> torch.Tensor:
        # The large first column sets the scale of the rounding; all else drowns in it.
        result = used.to(torch.bfloat16).to(used.dtype) * 1e-9
        result[:, 0] = 1
        return result

    module.make_inputs, module.reference = make_inputs, reference
    sys.modules["weak_problem"] = module
    yield catalog.Problem(99, "99_weak", "none", "Weak", "ours", "weak_problem", "0")
    del sys.modules["weak_problem"]


def test_a_weak_problem_is_told(weak: catalog.Problem) -> None:
    broken = {check.name for check in gate.Gate(weak, workload="smoke").checks() if not check.holds}
    assert "input 1 matters" in broken
    assert "another draw's output" in broken
    # The mean is 1/16, far from 1: even this problem tells that.
    assert "its mean as output" not in broken


def test_the_command_prints_a_table_and_says_whether_all_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert gate.main(["36"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("36_rmsnorm_h128_qwen3_30b_bf16: ")
    assert printed.endswith("1 of 1 problems pass the gate\n")
