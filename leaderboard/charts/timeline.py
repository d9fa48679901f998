"""An attempt's submissions over its wall clock: speed-up upwards, failures on the floor."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.charts.scale import Scale, Tick, ticks

WIDTH = 640
HEIGHT = 220
LEFT, RIGHT, TOP, BOTTOM = 64, 606, 16, 168
FLOOR = 184
_STEPS_SEC = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200)


@dataclass(frozen=True)
class Point:
    """What is known of one submission; `speedup` is None unless it passed."""

    number: int
    elapsed_sec: float
    speedup: float | None


@dataclass(frozen=True)
class Spot:
    """Where a submission is drawn."""

    number: int
    x: float
    y: float
    passed: bool


@dataclass(frozen=True)
class Timeline:
    """The plot in SVG units; `best` is the path of the best speed-up so far."""

    spots: tuple[Spot, ...]
    best: str
    parity: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def timeline(points: Sequence[Point], end_sec: float) -> Timeline | None:
    """Return the plot of at least one submission; None for none.

    Args:
        points: in the order sent.
        end_sec: what the time axis reaches at least: the attempt's end or its budget, in s.
    """
    if not points:
        return None
    speedups = [1.0, *(point.speedup for point in points if point.speedup)]
    x = Scale(0, max(1.0, end_sec, *(point.elapsed_sec for point in points)), LEFT, RIGHT)
    y = Scale(min(speedups) / 1.5, max(speedups) * 1.5, BOTTOM, TOP, logarithmic=True)
    spots = tuple(
        Spot(
            point.number,
            x.at(point.elapsed_sec),
            y.at(point.speedup) if point.speedup else FLOOR,
            point.speedup is not None,
        )
        for point in points
    )
    return Timeline(spots, _best(spots), y.at(1.0), _time_ticks(x), ticks(y))


def _time_ticks(scale: Scale) -> tuple[Tick, ...]:
    """Whole seconds, minutes or hours, six at most."""
    step = next((step for step in _STEPS_SEC if scale.high / step <= 6), _STEPS_SEC[-1])
    n_ticks = int(scale.high // step) + 1
    return tuple(Tick(scale.at(step * index), step * index) for index in range(n_ticks))


def _best(spots: Sequence[Spot]) -> str:
    """A staircase that rises whenever a submission beats all before it."""
    steps: list[str] = []
    height = float("inf")
    for spot in spots:
        if spot.passed and spot.y < height:
            height = spot.y
            steps.append(f"M{spot.x} {spot.y}" if not steps else f"H{spot.x}V{spot.y}")
    return "".join(steps) + f"H{spots[-1].x}" if steps else ""
