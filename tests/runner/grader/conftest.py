"""Kernels that misbehave, and verdicts that several tests look at."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from problems import catalog
from runner.grader import examine, limits, referee
from runner.grader.cases import Case, set_numerics
from runner.grader.faults import KernelError
from runner.grader.record import Record
from runner.grader.session import Session
from runner.messages import GradeOrder, Verdict
from runner.protocol import Dsl

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


@pytest.fixture(scope="module")
def judge() -> Iterator[Callable[[str], KernelError]]:
    """Load kernels one after the other into one child, and return what each was found to do.

    Only for kernels that leave the process alive: importing torch again for each would take most
    of the tests' time. Everything else is as in a grading.
    """
    set_numerics()
    case = Case(catalog.find("36"), workload="smoke", device="cpu")
    deadline = time.monotonic() + limits.LIMIT_SEC
    with Session("", dsl=Dsl.CUTEDSL, device="cpu", deadline=deadline) as session:
        session.ready()

        def judged(kernel: str) -> KernelError:
            (session._folder / "kernel.py").write_text(kernel)
            examiner = examine.Examiner(session, Record(), device="cpu")
            try:
                examiner.load(())
                examiner.correctness(case)
            except KernelError as fault:
                return fault
            raise AssertionError("the kernel passed")

        yield judged
