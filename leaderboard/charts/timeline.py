"""An attempt's submissions over its wall clock: speed-up upwards, failures on the floor."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.charts.scale import Scale, Tick, ticks

WIDTH = 640
HEIGHT = 220
LEFT, RIGHT, TOP, BOTTOM = 56, 624, 16, 168
FLOOR = 184


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


def timeline(points: Sequence[Point], budget_sec: float) -> Timeline | None:
    """Return the plot of at least one submission; None for none."""
    if not points:
        return None
    speedups = [1.0, *(point.speedup for point in points if point.speedup)]
    x = Scale(0, max(budget_sec, *(point.elapsed_sec for point in points)), LEFT, RIGHT)
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
    return Timeline(spots, _best(spots), y.at(1.0), ticks(x), ticks(y))


def _best(spots: Sequence[Spot]) -> str:
    """A staircase that rises whenever a submission beats all before it."""
    steps: list[str] = []
    height = float("inf")
    for spot in spots:
        if spot.passed and spot.y < height:
            height = spot.y
            steps.append(f"M{spot.x} {spot.y}" if not steps else f"H{spot.x}V{spot.y}")
    return "".join(steps) + f"H{spots[-1].x}" if steps else ""
