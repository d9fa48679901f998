"""Grading on a CUDA device: device memory shared with the child, events held to the wall clock.

Needs torch, both DSLs and a GPU; neither Django nor Celery. From the checkout:
`python -m pytest -c tests/gpu/pytest.ini tests/gpu`.
"""

from pathlib import Path

import pytest
import torch

from runner.grader import blocks, limits, referee
from runner.messages import GradeOrder, Verdict
from runner.protocol import Dsl, Outcome

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).parent / "kernels"

EAGER = """
import cutlass
import torch

_DSL = cutlass.Float32


def answer(hidden_states, weight):
    rows = hidden_states.float()
    inverse = torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (rows * inverse * weight.float()).to(torch.bfloat16)

"""


def grade(kernel: str, *, dsl: str = "cutedsl", workload: str = "smoke") -> Verdict:
    return referee.grade(GradeOrder("36", dsl, kernel, "cuda", workload))


def wrong(body: str) -> Verdict:
    """Grade eager's answer with a solve that misuses it."""
    return grade(EAGER + body)


@pytest.mark.parametrize("dsl", list(Dsl))
@pytest.mark.parametrize("workload", ["smoke", "full"])
def test_an_honest_kernel_passes(dsl: Dsl, workload: str) -> None:
    kernel = (KERNELS / f"p36_{dsl}.py").read_text()
    verdict = grade(kernel, dsl=dsl, workload=workload)
    assert verdict.outcome is Outcome.PASSED, verdict
    assert len(verdict.kernel_draws_ms) == len(verdict.eager_draws_ms) == limits.TIMED_DRAWS
    assert verdict.findings == ()
    assert verdict.environment["card_before"]["name"]
    assert (verdict.speedup or 0) > 0


@pytest.mark.parametrize("dsl", list(Dsl))
def test_held_out_workloads_pass_too(dsl: Dsl) -> None:
    kernel = (KERNELS / f"p36_{dsl}.py").read_text()
    verdict = grade(kernel, dsl=dsl, workload="heldout")
    assert verdict.outcome is Outcome.PASSED, verdict
    assert verdict.kernel_ms is None


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("def solve(x, w):\n    return torch.zeros_like(x)\n", Outcome.WRONG_VALUES),
        ("def solve(x, w):\n    return x\n", Outcome.WRONG_VALUES),
        ("def solve(x, w):\n    return answer(x, w).cpu()\n", Outcome.WRONG_STRUCTURE),
        ("def solve(x, w):\n    return answer(x, w) * torch.nan\n", Outcome.NON_FINITE),
        (
            "def solve(x, w):\n    y = answer(x, w)\n    x.zero_()\n    return y\n",
            Outcome.MUTATED_INPUT,
        ),
        ("def solve(x, w):\n    return torch.empty(1 << 42, device='cuda')\n", Outcome.OOM),
        (
            "kept = {}\n\n\ndef solve(x, w):\n"
            "    return kept.setdefault('first', answer(x, w))\n",
            Outcome.WRONG_VALUES,
        ),
    ],
    ids=["zeros", "input", "host", "nan", "mutated", "oom", "cached"],
)  # fmt: skip
def test_a_kernel_that_misbehaves_is_told_what_it_did(body: str, outcome: Outcome) -> None:
    assert wrong(body).outcome is outcome


def test_work_on_a_side_stream_is_timed() -> None:
    # 100 million cycles are about 50 ms on any card of the last ten years.
    body = (
        "side = torch.cuda.Stream()\n\n\ndef solve(x, w):\n    y = answer(x, w)\n"
        "    with torch.cuda.stream(side):\n        torch.cuda._sleep(100_000_000)\n    return y\n"
    )
    verdict = wrong(body)
    assert verdict.outcome is Outcome.PASSED, verdict
    assert (verdict.kernel_ms or 0) > 20


def test_a_forged_event_is_found_out_and_replaced() -> None:
    body = (
        "torch.cuda.Event.elapsed_time = lambda start, end: 1e-6\n\n\ndef solve(x, w):\n"
        "    torch.cuda._sleep(10_000_000)\n    return answer(x, w)\n"
    )
    verdict = wrong(body)
    assert verdict.outcome is Outcome.PASSED, verdict
    assert "two clocks disagree" in verdict.findings[0]
    assert (verdict.kernel_ms or 0) > 2


def test_an_illegal_access_ends_the_child_alone() -> None:
    body = "def solve(x, w):\n    i = torch.full((8,), 1 << 40, device='cuda')\n    return x[i]\n"
    assert wrong(body).outcome in (Outcome.RUNTIME_ERROR, Outcome.CRASH)
    assert float(torch.ones(3, device="cuda").sum()) == 3


def test_a_block_is_an_allocation_of_its_own() -> None:
    first, second = (blocks.create(100, device="cuda") for _ in range(2))
    addresses = [block.tensor.data_ptr() for block in (first, second)]
    assert all(address % blocks.DEVICE_PAGE_BYTES == 0 for address in addresses)
    assert (first.tensor == 0xFF).all()
    first.close()
    second.close()
