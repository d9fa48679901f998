"""The rules that judge element by element, with hand arithmetic."""

import math

import pytest
import torch

from problems.tolerance import CodeSteps, Relative
from runner.grader.accuracy import Found, Truth, compare
from runner.grader.screening import Screen
from runner.grader.steps import code_steps, relative_errors
from runner.protocol import Outcome


def codes(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.uint8)


def compared(actual: torch.Tensor, anchor: torch.Tensor, before: torch.Tensor | None) -> Found:
    truth = Truth(anchor, anchor, before)
    return compare(actual, truth, rule=CodeSteps(0.002), path="output")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    # 0x38 is 1.0 and 0x39 the next value, 1.125; 0xB8 and 0xB9 likewise below zero. The least
    # values 0x01 and 0x81 are one step from either zero.
    [(0x38, 0x39), (0xB9, 0xB8), (0x00, 0x01), (0x80, 0x01), (0x81, 0x00), (0x7D, 0x7E)],
)
def test_neighbouring_values_are_one_step_apart(ours: int, theirs: int) -> None:
    found = code_steps(codes(ours), codes(theirs), limit=0.002, n_written=1)
    # One of the eight that are always allowed.
    assert (found.reason, found.ratio) == (None, 1 / 8)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(0x38, 0x3A), (0x01, 0x81), (0x38, 0xB8), (0x7E, 0xFE), (0xFE, 0x00)]
)
def test_two_steps_are_too_many(ours: int, theirs: int) -> None:
    found = code_steps(codes(ours, 1), codes(theirs, 1), limit=1.0, n_written=2)
    assert (found.n_wrong, found.first_wrong, found.n_not_finite) == (1, 0, 0)


def test_both_zeros_are_one_value() -> None:
    assert code_steps(codes(0x00, 0x80), codes(0x80, 0x00), limit=0, n_written=2).ratio == 0


@pytest.mark.parametrize("nan", [0x7F, 0xFF])
def test_a_code_of_nan_is_wrong_one_step_from_the_largest_value(nan: int) -> None:
    found = compared(codes(0, nan), codes(0, nan - 1), None)
    assert found.outcome is Outcome.NON_FINITE
    assert found.mismatch is not None
    assert found.mismatch.path == "output[1]"


def test_a_code_of_nan_that_was_there_before_is_right() -> None:
    assert compared(codes(0x7F, 0xFF), codes(0x7F, 0xFF), None).outcome is None


@pytest.mark.parametrize(("n_off", "passes"), [(10, True), (11, False)])
def test_a_share_of_the_written_codes_may_be_one_step_off(n_off: int, passes: bool) -> None:
    # 10 rows of 1,000 codes, of which 5 are written: 0.002 * 5,000 = 10 may differ.
    before = torch.zeros(10, 1_000, dtype=torch.uint8)
    anchor = before.clone()
    anchor[:5] = 0x38
    actual = anchor.clone()
    actual[0, :n_off] += 1
    found = compared(actual, anchor, before)
    assert (found.outcome is None) == passes
    assert found.error_ratio == pytest.approx(n_off / 10)
    # Without knowing what was there, all 10,000 count, and 20 may differ.
    assert compared(actual, anchor, None).error_ratio == pytest.approx(n_off / 20)


@pytest.mark.parametrize(("n_off", "passes"), [(8, True), (9, False)])
def test_eight_codes_are_always_allowed(n_off: int, passes: bool) -> None:
    # 0.002 * 1,000 = 2, less than 8.
    anchor = torch.full((1_000,), 0x38, dtype=torch.uint8)
    actual = anchor.clone()
    actual[:n_off] += 1
    found = compared(actual, anchor, None)
    assert (found.outcome is None) == passes
    if found.mismatch is not None:
        assert found.mismatch.reason == "9 of 1000 codes are one step off; 8 may be"


def test_a_relative_error_counts_at_each_elements_own_magnitude() -> None:
    # Half a millionth of 1e-6 and of 1,000: 5e-13 and 5e-4.
    anchor = torch.tensor([1e-6, 1_000.0], dtype=torch.float64)
    near = anchor + torch.tensor([4e-13, -2.5e-4], dtype=torch.float64)
    assert relative_errors(near, anchor, limit=5e-7).ratio == pytest.approx(0.8, rel=1e-6)
    far = anchor + torch.tensor([6e-13, 0.0], dtype=torch.float64)
    found = compare(far, Truth(anchor, anchor), rule=Relative(5e-7), path="output")
    assert found.outcome is Outcome.WRONG_VALUES
    assert found.error_ratio == pytest.approx(1.2, rel=1e-6)
    assert found.mismatch is not None
    assert (found.mismatch.path, found.mismatch.n_wrong) == ("output[0]", 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_scale_that_is_not_finite_never_passes(value: float) -> None:
    anchor = torch.ones(2, dtype=torch.float64)
    actual = torch.tensor([1.0, value])
    found = compare(actual, Truth(anchor.float(), anchor), rule=Relative(5e-7), path="output")
    assert found.outcome is Outcome.NON_FINITE


def test_a_target_of_zero_allows_zero_alone() -> None:
    zero = torch.zeros(1, dtype=torch.float64)
    assert relative_errors(zero, zero, limit=5e-7).reason is None
    assert relative_errors(zero + 1e-30, zero, limit=5e-7).n_wrong == 1


def test_the_screen_clears_only_what_equals_eager() -> None:
    screen = Screen()
    ours = codes(0x38, 0x39)
    screen.learn(0, Truth(ours, ours), CodeSteps(0.002))
    assert screen.clears(0, ours.clone(), ours, CodeSteps(0.002))
    assert not screen.clears(0, codes(0x38, 0x3A), ours, CodeSteps(0.002))
    scales = torch.tensor([0.5, 0.25])
    assert screen.clears(1, scales.clone(), scales, Relative(5e-7))
    assert not screen.clears(1, scales * (1 + 2e-7), scales, Relative(5e-7))
