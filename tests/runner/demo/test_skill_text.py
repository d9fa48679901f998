"""The skill that is handed on: what it states, what it leaves out, and what is read from it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.demo.assignment import Assignment
from runner.demo.kernels import Kernel, Shelf
from runner.demo.progress import Measured
from runner.demo.skill_text import Advice, read_skill, write_skill
from runner.protocol import Dsl, Outcome
from tests.runner.demo.attempts import STRATEGIES, make_shelf

ASSIGNMENT = Assignment("98_made_up_problem", Dsl.TIRX, "cpu", "smoke", None)
KERNELS = {name: Kernel(name, "x = 1", f"The {name} way.") for name in STRATEGIES}


def measured(strategy: str, speedup: float) -> Measured:
    return Measured(strategy, Outcome.PASSED, kernel_ms=2 / speedup, eager_ms=2.0)


def test_every_submission_is_stated_with_outcome_times_and_speedup() -> None:
    submissions = [Measured("mixed", Outcome.WRONG_VALUES), measured("fused", 1.25)]
    text = write_skill(ASSIGNMENT, submissions, KERNELS)
    assert "- Submission 1: mixed failed (wrong_values); it has no time." in text
    # 2 ms / 1.25 = 1.6 ms
    assert (
        "- Submission 2: fused passed, 1.6000 ms against 2.0000 ms for eager,"
        " 1.250 times as fast as eager."
    ) in text
    assert "device cpu with workload smoke, in TIRx alone" in text


def test_the_winner_is_compared_with_what_else_passed() -> None:
    text = write_skill(ASSIGNMENT, [measured("mixed", 0.5), measured("fused", 2.0)], KERNELS)
    # 1 ms is 25 % of 4 ms
    assert "Start from fused" in text
    assert "It took 25 % of mixed's time." in text


def test_a_winner_slower_than_eager_is_called_improvable() -> None:
    text = write_skill(ASSIGNMENT, [measured("mixed", 0.5), measured("fused", 0.4)], KERNELS)
    assert "Start from mixed" in text
    assert "slower than eager, so a better strategy is likely to exist" in text


def test_a_skill_holds_no_code_and_conditions_it_was_not_told_are_unknown(tmp_path: Path) -> None:
    shelf: Shelf = make_shelf(tmp_path)
    untold = Assignment("98_made_up_problem", Dsl.TIRX, None, None, None)
    text = write_skill(untold, [measured("mixed", 2.0)], shelf.kernels(98, Dsl.TIRX))
    assert "def solve" not in text
    assert "```" not in text
    assert "device unknown with workload unknown" in text


def test_a_reader_takes_the_fastest_and_the_failures_from_it() -> None:
    submissions = [measured("mixed", 0.5), measured("fused", 2.0), Measured("tuned", None)]
    advice = read_skill(write_skill(ASSIGNMENT, submissions, KERNELS))
    assert advice == Advice(best="fused", failed=("tuned",))


@pytest.mark.parametrize("text", ["", "Use shared memory.", "- Submission 1: mixed was nice"])
def test_a_text_that_measures_nothing_gives_no_advice(text: str) -> None:
    assert read_skill(text) == Advice()


SUBMISSIONS = st.lists(
    st.tuples(st.sampled_from(STRATEGIES), st.one_of(st.none(), st.floats(0.01, 100))),
    min_size=1,
    max_size=3,
    unique_by=lambda pair: pair[0],
)


@given(SUBMISSIONS)
def test_what_was_written_is_what_is_read(pairs: list[tuple[str, float | None]]) -> None:
    submissions = [
        Measured(name, Outcome.CRASH) if speed is None else measured(name, speed)
        for name, speed in pairs
    ]
    advice = read_skill(write_skill(ASSIGNMENT, submissions, KERNELS))
    assert advice.failed == tuple(name for name, speed in pairs if speed is None)
    speeds = {name: speed for name, speed in pairs if speed is not None}
    if advice.best is None:
        assert not speeds
    else:
        # Three decimals are printed, so two speed-ups closer than that may change places.
        assert speeds[advice.best] == pytest.approx(max(speeds.values()), abs=0.001)


def test_a_kernel_of_microseconds_keeps_its_digits() -> None:
    quick = Measured("mixed", Outcome.PASSED, kernel_ms=0.004321, eager_ms=0.02)
    assert "0.004321 ms against 0.020000 ms" in write_skill(ASSIGNMENT, [quick], KERNELS)
