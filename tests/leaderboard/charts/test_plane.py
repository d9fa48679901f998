"""The lift–harm plane."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from leaderboard.charts.plane import BOTTOM, LEFT, RIGHT, TOP, Point, plane

shares = st.floats(0, 1)
lifts = st.floats(-0.98, 60)


def point(lift: float = 0.0, harm: float = 0.2, name: str = "Model A", **fields: object) -> Point:
    values = {
        "name": name,
        "slug": "model-a",
        "direction": "cutedsl2tirx",
        "is_scripted": False,
        "harm": harm,
        "harm_interval": None,
        "lift": lift,
        "lift_interval": None,
    }
    return Point(**(values | fields))  # type: ignore[arg-type]


def test_nothing_measured_is_no_picture() -> None:
    assert plane([]) is None


def test_a_doubling_and_a_halving_lie_equally_far_from_no_effect() -> None:
    found = plane([point(1.0), point(-0.5)])
    assert found is not None
    up, down = found.spots
    assert round(found.zero_y - up.y, 1) == round(down.y - found.zero_y, 1) > 0


def test_intervals_are_drawn_around_their_points() -> None:
    found = plane([point(0.1, 0.3, lift_interval=(-0.2, 0.5), harm_interval=(0.1, 0.6))])
    assert found is not None
    (spot,) = found.spots
    assert spot.x_span is not None
    assert spot.y_span is not None
    assert spot.x_span[0] < spot.x < spot.x_span[1]
    assert spot.y_span[0] > spot.y > spot.y_span[1]


def test_an_unknown_interval_is_not_drawn() -> None:
    found = plane([point()])
    assert found is not None
    assert found.spots[0].x_span is None
    assert found.spots[0].y_span is None


def test_no_effect_is_always_on_the_axis() -> None:
    found = plane([point(3.0)])
    assert found is not None
    assert 0 in [tick.value for tick in found.y_ticks]


def test_a_long_name_is_cut() -> None:
    found = plane([point(name="A model with a very long public name")])
    assert found is not None
    label = found.spots[0].label
    assert label is not None
    assert label.text == "A model with a very lon…"


@given(st.lists(st.tuples(lifts, shares), min_size=1, max_size=30))
def test_every_mark_lies_inside_and_labels_keep_apart(values: list[tuple[float, float]]) -> None:
    found = plane([point(lift, harm) for lift, harm in values])
    assert found is not None
    for spot in found.spots:
        assert LEFT <= spot.x <= RIGHT
        assert TOP <= spot.y <= BOTTOM
    labels = [spot.label for spot in found.spots if spot.label]
    assert len({(label.x, label.y, label.anchor) for label in labels}) == len(labels)


@given(st.lists(st.tuples(lifts, lifts), min_size=1, max_size=10))
def test_ticks_are_readable_whatever_the_range(values: list[tuple[float, float]]) -> None:
    points = [point(low, lift_interval=(min(low, high), max(low, high))) for low, high in values]
    found = plane(points)
    assert found is not None
    positions = sorted(tick.position for tick in found.y_ticks)
    assert all(after - before >= 22 for before, after in pairwise(positions))
