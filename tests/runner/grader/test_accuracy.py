"""The two error rules, with hand arithmetic."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from problems.tolerance import Default, Exact, Frobenius, PerHead
from runner.grader.accuracy import Truth, budget, compare
from runner.grader.screening import Screen
from runner.protocol import Outcome

DOUBLE = torch.float64


def truth(expected: list[float], anchor: list[float], dtype: torch.dtype = torch.float32) -> Truth:
    return Truth(torch.tensor(expected, dtype=dtype), torch.tensor(anchor, dtype=DOUBLE))


def test_the_allowance_is_three_times_the_references_own_error() -> None:
    # |1.5 - 1| = 0.5 and |2 - 2| = 0: largest 0.5, rms sqrt(0.25 / 2) = 0.35355
    allowed = budget(truth([1.5, 2.0], [1.0, 2.0]))
    assert allowed.allowance == pytest.approx(1.5)
    assert allowed.rms_allowance == pytest.approx(3 * math.sqrt(0.125))


def test_an_exact_reference_leaves_three_rounding_steps() -> None:
    # bfloat16 has eps 2^-7; the largest anchor is 4, the rms is sqrt((16 + 0) / 2) = 2.828:
    # 3 * 2^-7 * 4 = 0.09375 and 3 * 2^-7 * 2.828 / sqrt(12) = 0.019137
    allowed = budget(truth([4.0, 0.0], [4.0, 0.0], torch.bfloat16))
    assert allowed.allowance == pytest.approx(0.09375)
    assert allowed.rms_allowance == pytest.approx(3 * 2**-7 * math.sqrt(8) / math.sqrt(12))


def test_an_error_at_the_allowance_passes_and_one_above_does_not() -> None:
    # One element of a thousand is off, so the root mean square stays small; the reference is
    # off by 1 there, so 3 is allowed.
    anchor = [0.0] * 1_000
    own = truth([1.0, *anchor[1:]], anchor)
    at, above = torch.zeros(1_000), torch.zeros(1_000)
    at[0], above[0] = 3.0, 3.001
    assert compare(at, own, rule=Default(), path="output").error_ratio == pytest.approx(1.0)
    found = compare(above, own, rule=Default(), path="output")
    assert found.outcome is Outcome.WRONG_VALUES
    assert found.mismatch is not None
    assert (found.mismatch.path, found.mismatch.n_wrong) == ("output[0]", 1)
    assert (found.mismatch.error, found.mismatch.allowance) == pytest.approx((3.001, 3.0))
    assert found.mismatch.n_elements == 1_000


def test_what_only_the_releases_rule_lets_pass_is_said_to_be_so() -> None:
    # The reference is off by 1 in one of a thousand: 3 may be the largest error, and
    # 3 * sqrt(1 / 1000) = 0.0949 its rms. An error of 0.5 everywhere has rms 0.5.
    anchor = [0.0] * 1_000
    found = compare(
        torch.full((1_000,), 0.5), truth([1.0, *anchor[1:]], anchor), rule=Default(), path="output"
    )
    assert found.outcome is Outcome.WRONG_VALUES
    assert found.mismatch is not None
    assert "would pass the release's rule" in found.mismatch.reason
    assert found.error_ratio == pytest.approx(0.5 / 3)
    assert found.rms_ratio == pytest.approx(0.5 / (3 * math.sqrt(0.001)))
    assert found.mismatch.n_wrong == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_passes(value: float) -> None:
    # The reference's own error is as large as can be, and still it does not help.
    found = compare(
        torch.tensor([1.0, value]), truth([1.0, 1e30], [1.0, 2.0]), rule=Default(), path="output"
    )
    assert found.outcome is Outcome.NON_FINITE
    assert found.mismatch is not None
    assert found.mismatch.path == "output[1]"
    assert found.mismatch.error is None
    assert found.error_ratio is None


def test_equal_infinities_are_equal_and_opposite_ones_are_not() -> None:
    own = truth([-math.inf, 1.0], [-math.inf, 1.0])
    assert compare(torch.tensor([-math.inf, 1.0]), own, rule=Default(), path="o").outcome is None
    wrong = compare(torch.tensor([math.inf, 1.0]), own, rule=Default(), path="o")
    assert wrong.outcome is Outcome.NON_FINITE
    finite = compare(torch.tensor([-1e30, 1.0]), own, rule=Default(), path="o")
    assert finite.outcome is Outcome.WRONG_VALUES


def test_a_nan_in_the_anchor_lets_nothing_pass() -> None:
    own = truth([math.nan, 1.0], [math.nan, 1.0])
    for value in (0.0, math.nan):
        assert compare(torch.tensor([value, 1.0]), own, rule=Default(), path="o").outcome


def test_integers_must_be_equal_one_by_one() -> None:
    expected = torch.tensor([[1, 2], [3, 4]])
    found = compare(
        torch.tensor([[1, 2], [3, 5]]), Truth(expected, expected), rule=Default(), path="output[0]"
    )
    assert found.outcome is Outcome.WRONG_VALUES
    assert found.mismatch is not None
    assert (found.mismatch.path, found.mismatch.n_wrong) == ("output[0][1, 1]", 1)


def test_exact_means_every_bit() -> None:
    expected = torch.tensor([0.0, math.nan])
    own = Truth(expected, expected.double())
    assert compare(expected.clone(), own, rule=Exact(), path="o").outcome is None
    # -0.0 equals 0.0, but not bit for bit.
    assert compare(torch.tensor([-0.0, math.nan]), own, rule=Exact(), path="o").outcome


def test_frobenius_is_the_whole_error_over_the_whole_anchor() -> None:
    # ||(0, 0.1)|| / ||(3, 4)|| = 0.1 / 5 = 0.02
    own = truth([3.0, 4.0], [3.0, 4.0])
    actual = torch.tensor([3.0, 4.1], dtype=torch.float32)
    passed = compare(actual, own, rule=Frobenius(0.04), path="o")
    assert passed.outcome is None
    assert passed.error_ratio == pytest.approx(0.5, rel=1e-5)
    assert compare(actual, own, rule=Frobenius(0.01), path="o").outcome is Outcome.WRONG_VALUES
    nan = torch.tensor([math.nan, 4.0])
    assert compare(nan, own, rule=Frobenius(1e9), path="o").outcome is Outcome.NON_FINITE


def test_per_head_catches_what_a_louder_head_hides() -> None:
    # Head 0 is 1000 times head 1, so an error as large as head 1 is lost in the whole.
    anchor = torch.stack([torch.full((64,), 1_000.0), torch.ones(64)]).double()
    own = Truth(anchor.bfloat16(), anchor)
    actual = own.expected.clone()
    actual[1] = 0
    assert compare(actual, own, rule=Default(), path="output").outcome is None
    found = compare(actual, own, rule=PerHead(0), path="output")
    assert found.outcome is Outcome.WRONG_VALUES
    assert found.mismatch is not None
    assert found.mismatch.path == "output at index 1 of axis 0[0]"


def test_an_empty_output_is_right() -> None:
    empty = torch.zeros(0, 4)
    assert compare(empty, Truth(empty, empty.double()), rule=Default(), path="o").outcome is None


@given(
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=40),
    st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
)
def test_the_reference_itself_always_passes_at_a_third(
    values: list[float], dtype: torch.dtype
) -> None:
    anchor = torch.tensor(values, dtype=DOUBLE)
    expected = anchor.to(dtype)
    found = compare(expected, Truth(expected, anchor), rule=Default(), path="o")
    assert found.outcome is None
    assert (found.error_ratio or 0) <= 1 / 3 + 1e-9
    assert (found.rms_ratio or 0) <= 1 / 3 + 1e-9


@given(st.integers(-20, 20))
def test_the_rule_does_not_depend_on_the_outputs_scale(exponent: int) -> None:
    anchor = torch.linspace(-1, 1, 33, dtype=DOUBLE)
    actual = anchor.float() + 1e-6
    factor = 2.0**exponent
    first = compare(actual, Truth(anchor.float(), anchor), rule=Default(), path="o")
    scaled = Truth((anchor * factor).float(), anchor * factor)
    second = compare(actual * factor, scaled, rule=Default(), path="o")
    assert second.error_ratio == pytest.approx(first.error_ratio)
    assert second.rms_ratio == pytest.approx(first.rms_ratio)


def screen_of(anchor: torch.Tensor) -> Screen:
    screen = Screen()
    screen.learn(0, Truth(anchor.bfloat16(), anchor), Default())
    return screen


def test_the_screen_clears_what_is_close_to_eager_at_another_scale() -> None:
    anchor = torch.linspace(-1, 1, 100, dtype=DOUBLE)
    eager = (anchor * 8).bfloat16()
    assert screen_of(anchor).clears(0, eager.clone(), eager, Default())


@pytest.mark.parametrize("wrong", [0.5, math.nan, math.inf])
def test_the_screen_sends_a_doubtful_output_to_the_anchor(wrong: float) -> None:
    anchor = torch.linspace(-1, 1, 100, dtype=DOUBLE)
    eager = anchor.bfloat16()
    actual = eager.clone()
    actual[3] = wrong
    assert not screen_of(anchor).clears(0, actual, eager, Default())


def test_the_screen_knows_the_exact_and_the_frobenius_rule() -> None:
    anchor = torch.linspace(1, 2, 100, dtype=DOUBLE)
    screen = Screen()
    screen.learn(0, Truth(anchor.float(), anchor), Exact())
    screen.learn(1, Truth(anchor.float(), anchor), Frobenius(0.01))
    near = anchor.float() * 1.001
    assert not screen.clears(0, near, anchor.float(), Exact())
    assert screen.clears(1, near, anchor.float(), Frobenius(0.01))
    assert not screen.clears(1, near * 1.1, anchor.float(), Frobenius(0.01))
