"""The lift–harm plane: harm to the right, lift upwards, both with their intervals."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leaderboard.charts.scale import Scale, Tick, ticks

WIDTH = 520
HEIGHT = 380
LEFT, RIGHT, TOP, BOTTOM = 62, 506, 14, 330
MARK = 5
LABEL_CHARS = 24

# Lifts worth a line on the axis; those too close to one already drawn are left out.
_LIFTS = (0, 1, -0.5, 3, -0.75, 0.25, -0.2, 0.5, 7, -0.9, 0.1, -0.1, 15, -0.95, 31, 63, 0.05, -0.05)
_TICK_ROOM = 22
_CHAR_WIDTH = 6.6
_LINE_HEIGHT = 13
_SMALLEST_SPAN = math.log(1.25)


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
class Label:
    """A name beside its mark; `x` and `y` are the middle of the line's height at its near end."""

    text: str
    x: float
    y: float
    anchor: str


@dataclass(frozen=True)
class Spot:
    """Where a point is drawn, in SVG units; intervals are spans. No room, no label."""

    point: Point
    x: float
    y: float
    x_span: tuple[float, float] | None
    y_span: tuple[float, float] | None
    label: Label | None

    @property
    def corner(self) -> tuple[float, float]:
        """The upper left corner of a square mark."""
        return round(self.x - MARK, 1), round(self.y - MARK, 1)


@dataclass(frozen=True)
class Plane:
    """The whole picture."""

    spots: tuple[Spot, ...]
    zero_y: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class _Box:
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def plane(points: Sequence[Point]) -> Plane | None:
    """Return the picture of at least one point; None for none.

    Lift is drawn as the logarithm of one plus itself, so that a doubling and a halving of the
    speed lie equally far from no effect.
    """
    if not points:
        return None
    x, y = _scales(points)
    places = [(x.at(point.harm), y.at(1 + point.lift)) for point in points]
    labels = _labels(points, places)
    spots = tuple(
        Spot(point, *place, _span(point.harm_interval, x), _lift_span(point, y), label)
        for point, place, label in zip(points, places, labels, strict=True)
    )
    return Plane(spots, y.at(1), ticks(x), _lift_ticks(y))


def _scales(points: Sequence[Point]) -> tuple[Scale, Scale]:
    harms = [value for point in points for value in (point.harm, *(point.harm_interval or ()))]
    lifts = [value for point in points for value in (point.lift, *(point.lift_interval or ()))]
    logs = [0.0, *(math.log1p(max(lift, -0.99)) for lift in lifts)]
    room = max(0.08 * (max(logs) - min(logs)), _SMALLEST_SPAN / 2)
    low, high = math.exp(min(logs) - room), math.exp(max(logs) + room)
    x = Scale(0, min(1.0, max(0.25, *harms) * 1.04), LEFT, RIGHT)
    return x, Scale(low, high, BOTTOM, TOP, logarithmic=True)


def _span(interval: tuple[float, float] | None, scale: Scale) -> tuple[float, float] | None:
    return (scale.at(interval[0]), scale.at(interval[1])) if interval else None


def _lift_span(point: Point, scale: Scale) -> tuple[float, float] | None:
    if point.lift_interval is None:
        return None
    low, high = point.lift_interval
    return _span((1 + low, 1 + high), scale)


def _lift_ticks(scale: Scale) -> tuple[Tick, ...]:
    found: list[Tick] = []
    for lift in _LIFTS:
        if scale.low <= 1 + lift <= scale.high:
            tick = Tick(scale.at(1 + lift), lift)
            if all(abs(tick.position - other.position) >= _TICK_ROOM for other in found):
                found.append(tick)
    return tuple(sorted(found, key=lambda tick: tick.value))


def _labels(points: Sequence[Point], places: Sequence[tuple[float, float]]) -> list[Label | None]:
    """Give each name the first place near its mark that no mark and no earlier name takes."""
    taken = [_Box(x - MARK, x + MARK, y - MARK, y + MARK) for x, y in places]
    labels: list[Label | None] = []
    for point, (x, y) in zip(points, places, strict=True):
        text = point.name
        if len(text) > LABEL_CHARS:
            text = text[: LABEL_CHARS - 1] + "…"
        free = ((label, box) for label, box in _candidates(text, x, y) if _is_free(box, taken))
        label, box = next(free, (None, None))
        labels.append(label)
        if box is not None:
            taken.append(box)
    return labels


def _candidates(text: str, x: float, y: float) -> Iterator[tuple[Label, _Box]]:
    width = _CHAR_WIDTH * len(text)
    for step in (-10, 11, 0, -24, 25, -38, 39):
        for anchor, near in (("start", x + MARK + 3), ("end", x - MARK - 3)):
            left = near if anchor == "start" else near - width
            middle = y + step
            half = _LINE_HEIGHT / 2
            label = Label(text, round(near, 1), round(middle, 1), anchor)
            yield label, _Box(left, left + width, middle - half, middle + half)


def _is_free(box: _Box, taken: Sequence[_Box]) -> bool:
    across, up = box.left >= LEFT and box.right <= WIDTH, box.top >= TOP and box.bottom <= BOTTOM
    return across and up and not any(box.meets(other) for other in taken)
