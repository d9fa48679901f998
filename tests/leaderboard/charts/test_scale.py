"""From numbers to positions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.charts.scale import Scale, ticks


def test_a_linear_scale_goes_from_end_to_end() -> None:
    scale = Scale(0, 10, 100, 200)
    assert [scale.at(value) for value in (0, 5, 10)] == [100, 150, 200]


def test_a_logarithmic_scale_puts_equal_ratios_at_equal_distances() -> None:
    scale = Scale(0.25, 4, 0, 100, logarithmic=True)
    assert [scale.at(value) for value in (0.25, 0.5, 1, 2, 4)] == [0, 25, 50, 75, 100]


def test_what_lies_outside_is_kept_at_the_edge() -> None:
    assert Scale(0, 1, 0, 100).at(7) == 100


def test_an_axis_may_run_upwards() -> None:
    assert Scale(0, 1, 300, 10).at(1) == 10


def test_ticks_are_round_numbers() -> None:
    assert [tick.value for tick in ticks(Scale(0, 1, 0, 100))] == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert [tick.value for tick in ticks(Scale(0.4, 9, 0, 1, logarithmic=True))] == [
        0.5,
        1,
        2,
        4,
        8,
    ]


def test_a_wide_logarithmic_axis_is_thinned() -> None:
    assert len(ticks(Scale(1e-6, 1e6, 0, 100, logarithmic=True))) <= 5


@given(st.floats(1e-3, 1e3), st.floats(1.1, 1e3), st.floats(0, 1))
def test_positions_keep_the_order_and_stay_inside(low: float, factor: float, share: float) -> None:
    scale = Scale(low, low * factor, 0, 500, logarithmic=True)
    value = low * factor**share
    assert 0 <= scale.at(low) <= scale.at(value) <= scale.at(low * factor) <= 500


@given(st.floats(-100, 100), st.floats(0.01, 1e4))
def test_ticks_lie_on_the_axis(low: float, width: float) -> None:
    found = ticks(Scale(low, low + width, 0, 500))
    assert 2 <= len(found) <= 8
    assert [tick.position for tick in found] == sorted(tick.position for tick in found)
    assert found[0].value >= low - 1e-6 * width
    assert found[-1].value == pytest.approx(min(found[-1].value, low + width), abs=1e-6 * width)
