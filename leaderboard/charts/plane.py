"""The lift–harm plane: harm to the right, lift upwards, both with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.charts.scale import Scale, Tick, around, ticks

WIDTH = 520
HEIGHT = 380
LEFT, RIGHT, TOP, BOTTOM = 62, 506, 14, 330
_LABEL_HEIGHT = 15
_MARK = 5


@dataclass(frozen=True)
class Point:
    """One entry in one direction; shares of 1. An interval that is unknown is None."""

    name: str
    slug: str
    direction: str
    is_scripted: bool
    harm: float
    harm_interval: tuple[float, float] | None
    lift: float
    lift_interval: tuple[float, float] | None


@dataclass(frozen=True)
class Spot:
    """Where a point is drawn, in SVG units; the intervals are spans or None."""

    point: Point
    x: float
    y: float
    x_span: tuple[float, float] | None
    y_span: tuple[float, float] | None
    label_y: float
    label_x: float
    label_anchor: str

    @property
    def corner(self) -> tuple[float, float]:
        """The upper left corner of a square mark."""
        return round(self.x - _MARK, 1), round(self.y - _MARK, 1)


@dataclass(frozen=True)
class Plane:
    """The whole picture."""

    spots: tuple[Spot, ...]
    zero_y: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def plane(points: Sequence[Point]) -> Plane | None:
    """Return the picture of at least one point; None for none."""
    if not points:
        return None
    harms = [value for point in points for value in (point.harm, *(point.harm_interval or ()))]
    lifts = [value for point in points for value in (point.lift, *(point.lift_interval or ()))]
    low, high = around(lifts, margin=0.06, least=0.2)
    x = Scale(0, min(1.0, max(0.25, *harms) * 1.04), LEFT, RIGHT)
    y = Scale(low, high, BOTTOM, TOP)
    spots: list[Spot] = []
    for point in sorted(points, key=lambda item: -item.lift):
        spots.append(_spot(point, x, y, spots))
    return Plane(tuple(spots), y.at(0), ticks(x), ticks(y))


def _spot(point: Point, x: Scale, y: Scale, before: Sequence[Spot]) -> Spot:
    at_x, at_y = x.at(point.harm), y.at(point.lift)
    is_right = at_x > (LEFT + RIGHT) * 0.6
    return Spot(
        point,
        at_x,
        at_y,
        _span(point.harm_interval, x),
        _span(point.lift_interval, y),
        _free_height(at_y - 9, [spot.label_y for spot in before]),
        at_x - 9 if is_right else at_x + 9,
        "end" if is_right else "start",
    )


def _span(interval: tuple[float, float] | None, scale: Scale) -> tuple[float, float] | None:
    return (scale.at(interval[0]), scale.at(interval[1])) if interval else None


def _free_height(wanted: float, taken: Sequence[float]) -> float:
    """Move a label down until no earlier one lies within a line of it."""
    height = max(wanted, TOP + 8.0)
    for other in sorted(taken):
        if abs(height - other) < _LABEL_HEIGHT:
            height = other + _LABEL_HEIGHT
    return round(min(height, BOTTOM - 4.0), 1)
