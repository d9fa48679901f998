"""Kernels that misbehave, and verdicts that several tests look at."""

from pathlib import Path

import pytest

from runner.grader import referee
from runner.messages import GradeOrder, Verdict

KERNELS = Path(__file__).parent.parent / "adversarial"


def kernel_text(name: str) -> str:
    return (KERNELS / f"{name}.py").read_text(encoding="utf-8")


def grade(kernel: str, *, dsl: str = "cutedsl", problem: str = "36", **limits: float) -> Verdict:
    """Grade a kernel's text on the smoke workload of the CPU device, in a real child."""
    return referee.grade(GradeOrder(problem, dsl, kernel, "cpu", "smoke"), **limits)


@pytest.fixture(scope="session")
def honest_cutedsl() -> Verdict:
    return grade(kernel_text("honest_cutedsl"))


@pytest.fixture(scope="session")
def honest_tirx() -> Verdict:
    return grade(kernel_text("honest_tirx"), dsl="tirx")
