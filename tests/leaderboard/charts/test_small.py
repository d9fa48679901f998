"""The bar of shares, the strips of draws, and the timeline of submissions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.charts import bar, strip, timeline

shares = st.floats(0, 1)
times = st.floats(1e-4, 1e4)


def test_a_bar_runs_from_helped_to_harmed() -> None:
    parts = bar.segments(helped=0.5, neutral=0.25, harmed=0.25)
    # 120 wide less two gaps of 1: 118 to share.
    assert [(part.kind, part.x, part.width) for part in parts] == [
        ("help", 0, 59.0),
        ("neutral", 60.0, 29.5),
        ("harm", 90.5, 29.5),
    ]


def test_an_empty_part_is_left_out() -> None:
    (part,) = bar.segments(helped=0, neutral=0, harmed=1)
    assert (part.kind, part.width) == ("harm", bar.WIDTH)
    assert bar.segments(helped=0, neutral=0, harmed=0) == ()


@given(shares, shares, shares)
def test_a_bar_never_leaves_its_box(helped: float, neutral: float, harmed: float) -> None:
    for part in bar.segments(helped=helped, neutral=neutral, harmed=harmed):
        assert 0 <= part.x <= part.x + part.width <= bar.WIDTH + 0.1


def test_without_draws_there_is_no_strip() -> None:
    assert strip.strip((), ()) is None


def test_each_draw_is_a_dot_and_the_slower_kernel_lies_further_right() -> None:
    found = strip.strip((1.0, 1.1, 1.2), (2.0, 2.1))
    assert found is not None
    kernel, eager = found.rows
    assert [len(kernel.dots), len(eager.dots)] == [3, 2]
    assert kernel.median == kernel.dots[1].x < eager.median


@given(st.lists(times, max_size=60), st.lists(times, max_size=60))
def test_draws_stay_on_their_axis(kernel: list[float], eager: list[float]) -> None:
    found = strip.strip(kernel, eager)
    if found is None:
        assert not kernel
        assert not eager
        return
    assert 1 <= len(found.ticks) <= 4
    for row in found.rows:
        assert all(strip.LEFT <= dot.x <= strip.RIGHT for dot in row.dots)


def point(number: int, elapsed_sec: float, speedup: float | None) -> timeline.Point:
    return timeline.Point(number, elapsed_sec, speedup)


def test_without_submissions_there_is_no_timeline() -> None:
    assert timeline.timeline([], 2_400) is None


def test_a_failure_lies_on_the_floor_and_the_best_so_far_only_rises() -> None:
    points = [point(1, 60, None), point(2, 120, 1.0), point(3, 180, 0.5), point(4, 240, 2.0)]
    found = timeline.timeline(points, 300)
    assert found is not None
    failed, first, _worse, best = found.spots
    assert failed.y == timeline.FLOOR
    assert first.y == found.parity
    assert found.best == f"M{first.x} {first.y}H{best.x}V{best.y}H{best.x}"


def test_only_failures_have_no_best() -> None:
    found = timeline.timeline([point(1, 60, None)], 2_400)
    assert found is not None
    assert found.best == ""


@pytest.mark.parametrize(
    ("end_sec", "ticks"),
    [
        (2_400, [0, 600, 1_200, 1_800, 2_400]),
        (300, [0, 60, 120, 180, 240, 300]),
        (8, [0, 2, 4, 6, 8]),
    ],
)
def test_time_is_ticked_in_whole_units(end_sec: float, ticks: list[float]) -> None:
    found = timeline.timeline([point(1, 1, 1.0)], end_sec)
    assert found is not None
    assert [tick.value for tick in found.x_ticks] == ticks


@given(
    st.lists(
        st.tuples(st.floats(0, 1e5), st.one_of(st.none(), st.floats(1e-3, 1e3))),
        min_size=1,
        max_size=20,
    ),
    st.floats(0, 1e5),
)
def test_submissions_stay_inside(
    submissions: list[tuple[float, float | None]], end_sec: float
) -> None:
    points = [point(number, *values) for number, values in enumerate(submissions)]
    found = timeline.timeline(points, end_sec)
    assert found is not None
    for spot in found.spots:
        assert timeline.LEFT <= spot.x <= timeline.RIGHT
        assert timeline.TOP <= spot.y <= timeline.FLOOR
    assert 1 <= len(found.x_ticks) <= 20
