"""What statistics take: graded attempts, and the comparisons made of three of them."""

import math
from dataclasses import dataclass

from runner.protocol import Direction


@dataclass(frozen=True)
class Graded:
    """One attempt's final result; `speedup` is eager time over kernel time, uncapped."""

    passed: bool
    speedup: float | None = None

    def __post_init__(self) -> None:
        if self.passed and not (
            self.speedup is not None and math.isfinite(self.speedup) and self.speedup > 0
        ):
            raise ValueError(
                f"a passed attempt has speed-up {self.speedup}: it must be finite and above zero;"
                " leave attempts without times out"
            )
        if not self.passed and self.speedup is not None:
            raise ValueError(
                f"a failed attempt has speed-up {self.speedup}: only a passed one is timed;"
                " give None"
            )


@dataclass(frozen=True)
class Comparison:
    """A resolved transfer: `conditioned` is None when the source wrote no skill to hand on.

    `source` is the solo in the DSL the skill comes from, `solo` the one in the target's.
    `direction` tells two comparisons of one problem and replicate apart where both are in a set.
    """

    problem: int
    family: str
    replicate: int
    source: Graded
    solo: Graded
    conditioned: Graded | None
    direction: Direction | None = None

    @property
    def in_target(self) -> Graded:
        """The attempt that counts as conditioned: when skipped, the solo itself."""
        return self.solo if self.conditioned is None else self.conditioned
