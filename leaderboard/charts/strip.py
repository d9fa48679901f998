"""The timing draws of one kernel beside those of its eager baseline, as two strips of dots."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.charts.scale import Scale, Tick, ticks

WIDTH = 320
HEIGHT = 76
LEFT, RIGHT = 56, 292
ROWS = {"kernel": 16, "eager": 40}
AXIS = 56
_LANES = (0, 4, -4, 2, -2)


@dataclass(frozen=True)
class Dot:
    """One draw."""

    x: float
    y: float


@dataclass(frozen=True)
class Row:
    """One strip: its draws and the mark of their median."""

    name: str
    y: float
    dots: tuple[Dot, ...]
    median: float


@dataclass(frozen=True)
class Strip:
    """Both strips on one logarithmic axis in ms."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]


def strip(kernel_ms: Sequence[float], eager_ms: Sequence[float]) -> Strip | None:
    """Return the plot, or None when there is nothing to draw.

    Args:
        kernel_ms: draws in ms, above zero, in the order drawn; likewise `eager_ms`.
    """
    named = {"kernel": kernel_ms, "eager": eager_ms}
    known = [value for draws in named.values() for value in draws if value > 0]
    if not known:
        return None
    scale = Scale(min(known) / 1.15, max(known) * 1.15, LEFT, RIGHT, logarithmic=True)
    rows = tuple(_row(name, draws, scale) for name, draws in named.items() if draws)
    return Strip(rows, _axis(scale))


def _row(name: str, draws: Sequence[float], scale: Scale) -> Row:
    y = ROWS[name]
    dots = tuple(
        Dot(scale.at(value), y + _LANES[index % len(_LANES)]) for index, value in enumerate(draws)
    )
    return Row(name, y, dots, scale.at(statistics.median(draws)))


def _axis(scale: Scale) -> tuple[Tick, ...]:
    """Both ends of a narrow axis, or the powers of two within a wide one."""
    found = ticks(scale, 4)
    if len(found) >= 2:
        return found
    ends = (scale.low * 1.15, scale.high / 1.15)
    return tuple(Tick(scale.at(value), value) for value in dict.fromkeys(ends))
