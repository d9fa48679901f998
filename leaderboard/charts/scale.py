"""From numbers to positions: linear and logarithmic scales, and round ticks."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A mapping of [low, high] onto [start, end] in SVG units; logarithmic scales need low > 0."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value, kept within the axis and rounded to 0.1 units."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis."""

    position: float
    value: float


def ticks(scale: Scale, n_wanted: int = 5) -> tuple[Tick, ...]:
    """Return round values within the scale, about `n_wanted` of them; never more if logarithmic."""
    if scale.logarithmic:
        return tuple(Tick(scale.at(value), value) for value in _powers(scale, n_wanted))
    step = _round_step((scale.high - scale.low) / n_wanted)
    first = math.ceil(scale.low / step - 1e-9)
    last = math.floor(scale.high / step + 1e-9)
    values = [round(index * step, 12) for index in range(first, last + 1)]
    return tuple(Tick(scale.at(value), value) for value in values)


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)


def _powers(scale: Scale, n_most: int) -> list[float]:
    """Powers of two, evenly thinned until few enough are left."""
    first = math.ceil(math.log2(scale.low) - 1e-9)
    last = math.floor(math.log2(scale.high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / n_most))
    return [2.0**power for power in range(first, last + 1) if power % step == 0]
